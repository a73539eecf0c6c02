package shop

/** What the Android build makes of the app's drawables. */
object R {
    object drawable {
        const val ic_push = android.R.drawable.ic_dialog_info
    }
}

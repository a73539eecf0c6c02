package android.content

abstract class Context {
    abstract fun getSharedPreferences(name: String, mode: Int): SharedPreferences

    open fun startActivity(intent: Intent): Unit = TODO("$intent")

    companion object {
        const val MODE_PRIVATE = 0
    }
}

abstract class ComponentName

abstract class Intent {
    abstract var component: ComponentName?
    abstract var selector: Intent?

    abstract fun addCategory(category: String): Intent

    abstract fun addFlags(flags: Int): Intent

    companion object {
        const val CATEGORY_BROWSABLE = "android.intent.category.BROWSABLE"
        const val FLAG_ACTIVITY_NEW_TASK = 0x10000000
        const val URI_INTENT_SCHEME = 1

        fun parseUri(uri: String, flags: Int): Intent = TODO("$uri $flags")
    }
}

interface SharedPreferences {
    fun getString(key: String, default: String?): String?

    fun edit(): Editor

    interface Editor {
        fun putString(key: String, value: String?): Editor

        fun remove(key: String): Editor

        fun apply()
    }
}

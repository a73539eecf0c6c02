package pushsvc.android

import android.app.Activity
import android.app.NotificationManager
import android.content.ActivityNotFoundException
import android.content.BroadcastReceiver
import android.content.Context
import android.content.Intent
import android.os.Bundle
import android.util.Log
import java.net.URISyntaxException

/** Invisible. Android lets no receiver open a link, so a tap opens this, which reports it and goes on. */
class PushTapActivity : Activity() {
    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        val extras = intent.getBundleExtra(EXTRA_DATA) ?: Bundle()
        val data = extras.keySet().associateWith { extras.getString(it).orEmpty() }
        intent.getStringExtra(EXTRA_TAG)?.let { tag -> // Android does not remove it after a button
            (getSystemService(Context.NOTIFICATION_SERVICE) as NotificationManager).cancel(tag, SHOWN_ID)
        }
        Push.tapped(this, PushTap(intent.getStringExtra(EXTRA_URL), intent.getStringExtra(EXTRA_ACTION), data))
        finish()
    }
}

/** Reports a notification that was swiped away. */
class PushDismissReceiver : BroadcastReceiver() {
    override fun onReceive(context: Context, intent: Intent) {
        val token = intent.getStringExtra("token") ?: return
        val pending: PendingResult? = goAsync()
        Push.dismissed(token) { pending?.finish() }
    }
}

/** The data of the message whose notification, shown by the system, was tapped. */
internal fun messageData(intent: Intent): Map<String, String> {
    val extras = intent.extras ?: return emptyMap()
    return extras.keySet().mapNotNull { name -> extras.getString(name)?.let { name to it } }.toMap()
}

internal fun openLinkOrApp(context: Context, link: String?) {
    if (link != null && openLink(context, link)) return
    val start = context.packageManager.getLaunchIntentForPackage(context.packageName) ?: return
    open(context, start)
}

/** Opens an `https`, `http` or `intent:` URL, or one with an app's scheme. Returns whether it could. */
internal fun openLink(context: Context, link: String): Boolean {
    val intent = try {
        Intent.parseUri(link, Intent.URI_INTENT_SCHEME)
    } catch (error: URISyntaxException) {
        return false
    }
    intent.addCategory(Intent.CATEGORY_BROWSABLE) // only screens that any page may open
    intent.component = null
    intent.selector = null
    if (open(context, intent)) return true
    val fallback = intent.getStringExtra("browser_fallback_url") ?: return false
    return fallback.startsWith("http") && openLink(context, fallback)
}

private fun open(context: Context, intent: Intent): Boolean = try {
    context.startActivity(intent.addFlags(Intent.FLAG_ACTIVITY_NEW_TASK))
    true
} catch (error: ActivityNotFoundException) {
    false
} catch (error: SecurityException) { // a screen that is not open to others
    Log.w(TAG, "not opened", error)
    false
}

package pushsvc.android

import android.app.Notification
import android.app.NotificationChannel
import android.app.NotificationManager
import android.app.PendingIntent
import android.content.Context
import android.content.Intent
import android.graphics.Bitmap
import android.graphics.Color
import android.graphics.drawable.Icon
import android.net.Uri
import android.os.Build
import android.os.Bundle
import org.json.JSONArray
import org.json.JSONException
import org.json.JSONObject

internal const val SHOWN_ID = 0 // the tag distinguishes notifications
private const val MAX_ACTIONS = 3

internal const val EXTRA_DATA = "pushsvc.data"
internal const val EXTRA_ACTION = "pushsvc.action"
internal const val EXTRA_URL = "pushsvc.url"
internal const val EXTRA_TAG = "pushsvc.tag"

/** Builds and shows notifications. It blocks while images load. */
internal class Notifications(private val context: Context, private val options: PushOptions) {
    private val manager = context.getSystemService(Context.NOTIFICATION_SERVICE) as NotificationManager

    /** Returns whether the person can see it. */
    fun show(data: Map<String, String>, content: PushContent?): Boolean {
        val channelId = channelFor(content?.channelId)
        if (!isVisible(channelId)) return false
        val tag = content?.tag ?: data.getValue("notification_id")
        manager.notify(tag, SHOWN_ID, build(data, content ?: PushContent(), channelId, tag))
        return true
    }

    private fun build(
        data: Map<String, String>,
        content: PushContent,
        channelId: String,
        tag: String,
    ): Notification {
        val body = content.body ?: data["body"]
        val builder = builder(channelId)
            .setSmallIcon(drawable(content.icon) ?: options.smallIcon)
            .setContentTitle(content.title ?: data["title"])
            .setContentText(body)
            .setAutoCancel(true)
            .setContentIntent(tap(data, null, data["url"], tag))
            .setDeleteIntent(dismissal(data))
        content.count?.let(builder::setNumber)
        color(content.color)?.let(builder::setColor)
        val icon = data["icon"]
        val image = content.image ?: data["image"]
        val loadedIcon = icon?.let(::loadImage)
        // FCM takes the icon as the image if there is no image.
        val loadedImage = if (image == icon) null else image?.let(::loadImage)
        loadedIcon?.let(builder::setLargeIcon)
        builder.setStyle(style(loadedImage, body))
        actions(data).forEach { builder.addAction(it.toAction(data, tag)) }
        options.onBuild?.invoke(builder, data)
        return builder.build()
    }

    @Suppress("DEPRECATION") // Android 7 and older have no notification channels
    private fun builder(channelId: String) =
        if (Build.VERSION.SDK_INT >= 26) Notification.Builder(context, channelId) else Notification.Builder(context)

    private fun style(image: Bitmap?, body: String?): Notification.Style =
        if (image == null) {
            Notification.BigTextStyle().bigText(body)
        } else {
            Notification.BigPictureStyle().bigPicture(image).setSummaryText(body)
        }

    private fun channelFor(wanted: String?): String {
        if (Build.VERSION.SDK_INT < 26) return options.channelId
        if (wanted != null && manager.getNotificationChannel(wanted) != null) return wanted
        if (manager.getNotificationChannel(options.channelId) == null) {
            val importance = NotificationManager.IMPORTANCE_DEFAULT
            manager.createNotificationChannel(NotificationChannel(options.channelId, options.channelName, importance))
        }
        return options.channelId
    }

    private fun isVisible(channelId: String): Boolean {
        if (Build.VERSION.SDK_INT >= 24 && !manager.areNotificationsEnabled()) return false
        if (Build.VERSION.SDK_INT < 26) return true
        val importance = manager.getNotificationChannel(channelId)?.importance
        return importance != NotificationManager.IMPORTANCE_NONE
    }

    private fun tap(data: Map<String, String>, action: String?, url: String?, tag: String): PendingIntent {
        val extras = Bundle().apply { data.forEach { (name, value) -> putString(name, value) } }
        val intent = Intent(context, PushTapActivity::class.java)
            .setData(identity(data, action))
            .addFlags(Intent.FLAG_ACTIVITY_NEW_TASK)
            .putExtra(EXTRA_DATA, extras)
            .putExtra(EXTRA_ACTION, action)
            .putExtra(EXTRA_URL, url)
            .putExtra(EXTRA_TAG, tag)
        val flags = PendingIntent.FLAG_UPDATE_CURRENT or PendingIntent.FLAG_IMMUTABLE
        return PendingIntent.getActivity(context, 0, intent, flags)
    }

    private fun dismissal(data: Map<String, String>): PendingIntent {
        val intent = Intent(context, PushDismissReceiver::class.java)
            .setData(identity(data, null))
            .putExtra("token", data["token"])
        val flags = PendingIntent.FLAG_UPDATE_CURRENT or PendingIntent.FLAG_IMMUTABLE
        return PendingIntent.getBroadcast(context, 0, intent, flags)
    }

    /** Android keeps one intent for each of these. It logs them, so the token is not part of it. */
    private fun identity(data: Map<String, String>, action: String?): Uri =
        Uri.fromParts("pushsvc", data.getValue("notification_id"), action)

    private fun actions(data: Map<String, String>): List<Button> = try {
        val list = JSONArray(data["actions"] ?: "[]")
        List(minOf(list.length(), MAX_ACTIONS)) { Button(list.getJSONObject(it), data["url"]) }
    } catch (error: JSONException) { // of another sender
        emptyList()
    }

    private inner class Button(fields: JSONObject, commonUrl: String?) {
        private val id = fields.getString("id")
        private val title = fields.getString("title")
        private val url = fields.optString("url").ifEmpty { commonUrl }

        fun toAction(data: Map<String, String>, tag: String): Notification.Action =
            Notification.Action.Builder(null as Icon?, title, tap(data, id, url, tag)).build()
    }

    private fun drawable(name: String?): Int? =
        name?.let { context.resources.getIdentifier(it, "drawable", context.packageName) }?.takeIf { it != 0 }

    private fun color(text: String?): Int? = try {
        text?.let(Color::parseColor)
    } catch (error: IllegalArgumentException) {
        null
    }
}

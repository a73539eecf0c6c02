package shop

import android.app.Notification
import android.app.NotificationManager
import android.app.job.JobParameters
import android.app.job.JobScheduler
import android.content.Context
import android.content.Intent
import android.os.Bundle
import com.google.firebase.messaging.Google
import com.google.firebase.messaging.RemoteMessage
import org.json.JSONArray
import org.json.JSONObject
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.annotation.GraphicsMode
import org.robolectric.shadow.api.Shadow
import org.robolectric.shadows.ShadowJobService
import org.robolectric.shadows.ShadowLooper
import pushsvc.android.Push
import pushsvc.android.PushCallback
import pushsvc.android.PushDismissReceiver
import pushsvc.android.PushJobService
import pushsvc.android.PushResult
import pushsvc.android.PushTapActivity

/**
 * A phone with the app of docs/fcm.md. It does what the lines of its input say, each a JSON object,
 * on the app's main thread, and answers each with a line.
 */
@RunWith(RobolectricTestRunner::class)
@Config(sdk = [34], application = android.app.Application::class)
@GraphicsMode(GraphicsMode.Mode.NATIVE)
class Phone {
    private val context: Context = RuntimeEnvironment.getApplication()
    private val manager = context.getSystemService(NotificationManager::class.java)
    private val results = JSONArray()
    private val crashes = JSONArray()
    private val opened = JSONArray()
    private val messages = mutableListOf<Thread>()

    @Test
    fun obeys() {
        Thread.setDefaultUncaughtExceptionHandler { thread, error ->
            error.printStackTrace()
            synchronized(crashes) { crashes.put("${thread.name}: $error") }
        }
        while (true) {
            val line = JSONObject(readLine() ?: return)
            val answer = try {
                JSONObject().put("value", done(line.getString("do"), line))
            } catch (error: Throwable) {
                error.printStackTrace()
                JSONObject().put("error", error.toString())
            }
            println("\nphone: $answer") // JUnit does not end its line
        }
    }

    private fun done(command: String, line: JSONObject): Any? = when (command) {
        "install" -> install()
        "start" -> start(line)
        "address" -> Google.address = line.text("address")
        "firebase_calls" -> firebaseCalls(line)
        "call" -> call(line.getString("name"), line.getJSONArray("arguments"))
        "look" -> look()
        "receive" -> receive(line.getJSONObject("message"))
        "tap" -> tap(line.getString("tag"), line.text("action"))
        "dismiss" -> dismiss(line.getString("tag"))
        "tap_of_system" -> tapOfSystem(line.getJSONObject("message"), line.optBoolean("again"))
        "ask" -> asked()
        "stop" -> Push::class.java.getDeclaredField("app").apply { isAccessible = true }.set(null, null)
        "wait_for_messages" -> messages.forEach { it.join() }
        "mute" -> shadowOf(manager).setNotificationsEnabled(false)
        "run_job" -> runJob()
        "file" -> context.noBackupFilesDir.listFiles().orEmpty().single { it.extension == "json" }.path
        else -> throw IllegalArgumentException(command)
    }

    /** Nothing is left of the app before. */
    private fun install() {
        ShadowLooper.idleMainLooper()
        synchronized(crashes) {
            for (list in listOf(results, opened, crashes)) while (list.length() > 0) list.remove(0)
        }
        manager.cancelAll()
        manager.notificationChannels.forEach { manager.deleteNotificationChannel(it.id) }
        shadowOf(manager).setNotificationsEnabled(true)
        context.getSystemService(JobScheduler::class.java).cancelAll()
        context.noBackupFilesDir.listFiles().orEmpty().forEach { it.delete() }
        newlyOpened().count()
    }

    private fun newlyOpened() =
        generateSequence { shadowOf(context as android.app.Application).nextStartedActivity }

    /** As if the process had just been started. */
    private fun start(line: JSONObject) {
        System.setProperty("pushsvc.service", line.getString("service"))
        System.setProperty("pushsvc.channel", line.getString("channel"))
        ShopApp().apply { attachTo(context) }.onCreate()
    }

    private fun firebaseCalls(line: JSONObject) {
        val service = Robolectric.buildService(PushService::class.java).create().get()
        val address = line.getString("address")
        Google.address = address
        if (address.contains(":")) service.onNewToken(address) else service.onRegistered(address)
    }

    private fun call(name: String, arguments: JSONArray) {
        val callback = PushCallback { results.put(described(name, it)) }
        fun text(index: Int) = arguments.getString(index)
        fun texts(index: Int) = arguments.getJSONArray(index).let { list -> List(list.length(), list::getString) }
        fun map(index: Int) = arguments.getJSONObject(index).let { map -> map.keys().asSequence().associateWith(map::get) }
        when (name) {
            "login" -> Push.login(text(0), text(1), callback)
            "logout" -> Push.logout(callback)
            "addTags" -> Push.addTags(texts(0), callback)
            "removeTags" -> Push.removeTags(texts(0), callback)
            "setAttributes" -> Push.setAttributes(map(0), callback)
            "choose" -> Push.choose(map(0).mapValues { it.value as? Boolean }, callback)
            "categories" -> Push.categories { result, list ->
                val shown = list?.map { JSONObject().put("key", it.key).put("chosen", it.isChosen) }
                results.put(described(name, result).put("categories", shown?.let(::JSONArray)))
            }
            "joinAsTestDevice" -> Push.joinAsTestDevice(text(0), callback)
            "subscribe" -> Push.subscribe(callback)
            "unsubscribe" -> Push.unsubscribe(callback)
            "report" -> Push.report(text(0), text(1), null, callback)
            "status" -> Push.status {
                results.put(
                    JSONObject().put("call", name).put("is_subscribed", it.isSubscribed).put("address", it.address)
                        .put("id", it.subscriptionId).put("waiting", it.waiting),
                )
            }
            else -> throw IllegalArgumentException(name)
        }
    }

    private fun described(name: String, result: PushResult): JSONObject {
        val described = JSONObject().put("call", name)
        return when (result) {
            is PushResult.Done -> described.put("result", "done")
            is PushResult.Waiting -> described.put("result", "waiting").put("reason", result.reason)
            is PushResult.Refused ->
                described.put("result", "refused").put("status", result.status).put("code", result.code)
        }
    }

    private fun look(): JSONObject {
        ShadowLooper.idleMainLooper()
        val scheduler = context.getSystemService(JobScheduler::class.java)
        val jobs = scheduler.allPendingJobs.map {
            JSONObject().put("delay", it.minLatencyMillis).put("network", it.networkType).put("persisted", it.isPersisted)
        }
        newlyOpened().forEach { opened.put(it.dataString ?: "the app") }
        return JSONObject()
            .put("results", JSONArray(results.toString()))
            .put("crashes", synchronized(crashes) { JSONArray(crashes.toString()) })
            .put("jobs", JSONArray(jobs))
            .put("opened", JSONArray(opened.toString()))
            .put("shown", JSONArray(manager.activeNotifications.map { shown(it.tag, it.notification) }))
    }

    private fun shown(tag: String, notification: Notification): JSONObject {
        val extras = notification.extras
        return JSONObject()
            .put("tag", tag)
            .put("title", extras.getCharSequence(Notification.EXTRA_TITLE))
            .put("text", extras.getCharSequence(Notification.EXTRA_TEXT))
            .put("channel", notification.channelId)
            .put("channel_name", manager.getNotificationChannel(notification.channelId)?.name)
            .put("count", notification.number)
            .put("icon_width", notification.getLargeIcon()?.loadDrawable(context)?.intrinsicWidth)
            .put("image_width", extras.getParcelable(Notification.EXTRA_PICTURE, android.graphics.Bitmap::class.java)?.width)
            .put("buttons", JSONArray(notification.actions.orEmpty().map { it.title.toString() }))
    }

    /** As Firebase does it: on a thread of its own, with the message of FCM's HTTP v1. */
    private fun receive(message: JSONObject) {
        val service = Robolectric.buildService(PushService::class.java).create().get()
        val thread = Thread { service.onMessageReceived(RemoteMessage(bundle(message))) }
        thread.start()
        messages += thread
    }

    private fun bundle(message: JSONObject): Bundle {
        val bundle = Bundle()
        message.optJSONObject("data")?.let { data -> data.keys().forEach { bundle.putString(it, data.getString(it)) } }
        val shown = message.optJSONObject("notification") ?: return bundle
        val android = message.optJSONObject("android")?.optJSONObject("notification") ?: JSONObject()
        bundle.putString("gcm.n.e", "1")
        for (fields in listOf(shown, android)) fields.keys().forEach { bundle.putString("gcm.n.$it", fields.getString(it)) }
        // Names of the bundle that differ from those of HTTP v1.
        android.text("channel_id")?.let { bundle.putString("gcm.n.android_channel_id", it) }
        return bundle
    }

    private fun find(tag: String) = manager.activeNotifications.single { it.tag == tag }.notification

    private fun tap(tag: String, action: String?) {
        val notification = find(tag)
        val pending = if (action == null) notification.contentIntent else {
            notification.actions.single { it.title.toString() == action }.actionIntent
        }
        check(shadowOf(pending).isActivityIntent && shadowOf(pending).isImmutable)
        val activity = Robolectric.buildActivity(PushTapActivity::class.java, shadowOf(pending).savedIntent).create().get()
        check(activity.isFinishing)
        if (action == null && notification.flags and Notification.FLAG_AUTO_CANCEL != 0) manager.cancel(tag, 0)
    }

    private fun dismiss(tag: String) {
        val intent = shadowOf(find(tag).deleteIntent).savedIntent
        manager.cancel(tag, 0)
        PushDismissReceiver().onReceive(context, intent)
    }

    private fun tapOfSystem(message: JSONObject, isAgain: Boolean) {
        val intent = Intent(context, MainActivity::class.java).putExtras(bundle(message))
        if (isAgain) intent.addFlags(Intent.FLAG_ACTIVITY_LAUNCHED_FROM_HISTORY)
        Robolectric.buildActivity(MainActivity::class.java, intent).create()
    }

    /** The permissions that the app requests. */
    private fun asked(): JSONArray {
        val activity = Robolectric.buildActivity(MainActivity::class.java).create().get()
        askForNotifications(activity)
        return JSONArray(shadowOf(activity).lastRequestedPermission.requestedPermissions)
    }

    private fun runJob(): Boolean {
        val service = Robolectric.buildService(PushJobService::class.java).create().get()
        val params = Shadow.newInstanceOf(JobParameters::class.java)
        check(service.onStartJob(params))
        repeat(600) {
            if (Shadow.extract<ShadowJobService>(service).isJobFinished) return true
            Thread.sleep(50)
        }
        return false
    }

    private fun JSONObject.text(name: String): String? = if (isNull(name)) null else getString(name)
}

private fun ShopApp.attachTo(context: Context) {
    val attach = android.content.ContextWrapper::class.java.getDeclaredMethod("attachBaseContext", Context::class.java)
    attach.isAccessible = true
    attach.invoke(this, context)
}

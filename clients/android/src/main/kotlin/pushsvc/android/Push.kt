package pushsvc.android

import android.content.Context
import android.content.Intent
import android.os.Handler
import android.os.Looper
import android.util.Log
import java.io.File
import java.util.concurrent.CountDownLatch
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import org.json.JSONArray
import org.json.JSONObject

private const val REPORT_SECONDS = 8L

/**
 * The device's subscription. Every function returns at once, except [receive], can be called from any
 * thread, and throws nothing. Calls that cannot be sent are kept on the device until they can.
 */
object Push {
    @Volatile
    private var app: App? = null

    /** One thread for the file and the network. It ends when it has nothing to do. */
    private val worker = ThreadPoolExecutor(1, 1, 30, TimeUnit.SECONDS, LinkedBlockingQueue()) { task ->
        Thread(task, "pushsvc").apply { isDaemon = true }
    }.apply { allowCoreThreadTimeOut(true) }

    private val main = Handler(Looper.getMainLooper())

    /** Call this in `Application.onCreate`: the system starts the app for jobs and taps too. */
    @JvmStatic
    fun start(context: Context, options: PushOptions) {
        val app = App(context.applicationContext, options)
        this.app = app
        post { app.send() }
    }

    /**
     * Registers the app's address: a Firebase installation id or a registration token. Call this at
     * every start, with the address that Firebase hands over, even if it is the same.
     */
    @JvmStatic
    @JvmOverloads
    fun register(address: String, callback: PushCallback? = null) =
        queued(callback) { queue, done -> queue.address(address, done) }

    /** Links the device to the signed-in user. Your backend creates [identityToken] for the user. */
    @JvmStatic
    @JvmOverloads
    fun login(externalId: String, identityToken: String? = null, callback: PushCallback? = null) {
        val login = JSONObject().put("external_id", externalId).put("identity_token", identityToken)
        change(login, callback)
    }

    /** Unlinks the device from the user. It stays subscribed. */
    @JvmStatic
    @JvmOverloads
    fun logout(callback: PushCallback? = null) = change(JSONObject().put("external_id", JSONObject.NULL), callback)

    @JvmStatic
    @JvmOverloads
    fun addTags(tags: Collection<String>, callback: PushCallback? = null) =
        change(JSONObject().put("add_tags", JSONArray(tags)), callback)

    @JvmStatic
    @JvmOverloads
    fun removeTags(tags: Collection<String>, callback: PushCallback? = null) =
        change(JSONObject().put("remove_tags", JSONArray(tags)), callback)

    /** Replaces all attributes. Values are strings and numbers. */
    @JvmStatic
    @JvmOverloads
    fun setAttributes(attributes: Map<String, Any>, callback: PushCallback? = null) {
        // A copy as text, because JSONObject throws for a NaN only when it is written.
        val copy = try {
            JSONObject(JSONObject(attributes).toString())
        } catch (error: Exception) {
            return tell(callback, refused("not_a_string_or_number", error.toString()))
        }
        change(JSONObject().put("attributes", copy), callback)
    }

    /** Chooses categories by their keys; null returns to the category's default. */
    @JvmStatic
    @JvmOverloads
    fun choose(choices: Map<String, Boolean?>, callback: PushCallback? = null) {
        val body = JSONObject()
        choices.forEach { (key, isChosen) -> body.put(key, isChosen ?: JSONObject.NULL) }
        queued(callback) { queue, done -> queue.choose(body, done) }
    }

    /** Reads the channel's categories and the device's choices. It needs the network. */
    @JvmStatic
    fun categories(callback: PushCategoriesCallback) = post {
        val (result, categories) = app?.categories() ?: (NOT_STARTED to null)
        main.post { callback.onResult(result, categories) }
    }

    /**
     * Makes this a test device of the channel. [invitation] is the fragment of the link in a QR code
     * that the console shows for the app. It needs the network and a device that is subscribed: if
     * the result is `not_registered`, call it again after [register].
     */
    @JvmStatic
    @JvmOverloads
    fun joinAsTestDevice(invitation: String, callback: PushCallback? = null) = post {
        tell(callback, app?.joinAsTestDevice(invitation) ?: NOT_STARTED)
    }

    /** Subscribes the device again after [unsubscribe]. A new device subscribes by [register]. */
    @JvmStatic
    @JvmOverloads
    fun subscribe(callback: PushCallback? = null) = queued(callback) { queue, done -> queue.subscribe(done) }

    /** Ends the subscription. It stays ended at the next start, until [subscribe]. */
    @JvmStatic
    @JvmOverloads
    fun unsubscribe(callback: PushCallback? = null) = queued(callback) { queue, done -> queue.unsubscribe(done) }

    /** [callback] runs on the main thread. */
    @JvmStatic
    fun status(callback: (PushStatus) -> Unit) = post {
        val status = app?.status() ?: PushStatus(false, null, null, 0)
        main.post { callback(status) }
    }

    /**
     * Shows a message and reports it as received. Returns whether the message is from pushsvc; leave
     * others to their own code. Call this in Firebase's `onMessageReceived`: it loads images and waits
     * up to some seconds for the report, because the system may end the process as soon as
     * `onMessageReceived` returns. On the main thread it returns at once.
     */
    @JvmStatic
    @JvmOverloads
    fun receive(data: Map<String, String>, content: PushContent? = null): Boolean {
        val token = data["token"]
        val app = app
        if (app == null || token == null || data["notification_id"] == null) return false
        val show = {
            val isShown = try {
                app.notifications.show(data, content)
            } catch (error: Exception) { // a broken image or drawable is no reason to crash the app
                Log.e(TAG, "not shown", error)
                false
            }
            if (isShown) {
                val sent = CountDownLatch(1)
                report(token, "received", null) { sent.countDown() }
                if (Looper.myLooper() != Looper.getMainLooper()) sent.await(REPORT_SECONDS, TimeUnit.SECONDS)
            }
        }
        if (Looper.myLooper() == Looper.getMainLooper()) thread(name = "pushsvc-show") { show() } else show()
        return true
    }

    /**
     * Reports `received`, `clicked` or `dismissed` of a message that the app shows itself. [token] is
     * in the message's data. [action] is the id of the button that was clicked.
     */
    @JvmStatic
    @JvmOverloads
    fun report(token: String, event: String, action: String? = null, callback: PushCallback? = null) =
        report(token, event, action) { tell(callback, it) }

    /**
     * Reports the tap on a notification that the system showed, and opens its link. Call this in
     * `onCreate` and `onNewIntent` of the launcher activity. Returns whether there was one.
     */
    @JvmStatic
    fun handleTap(context: Context, intent: Intent): Boolean = try {
        app?.let { handleTap(it, context, intent) } ?: false
    } catch (error: RuntimeException) { // extras of another app that cannot be read
        Log.w(TAG, "not a tap", error)
        false
    }

    internal fun tapped(context: Context, tap: PushTap) {
        val app = app ?: return
        tap.data["token"]?.let { report(it, "clicked", tap.action) {} }
        val isOpened = app.options.onTap?.invoke(context, tap) ?: false
        if (!isOpened) openLinkOrApp(context, tap.url)
    }

    /** [onStored] is called when the report cannot get lost any more, before it is sent. */
    internal fun dismissed(token: String, onStored: () -> Unit) = post {
        try {
            app?.queue?.report(event(token, "dismissed", null)) {}
        } finally {
            onStored()
        }
        app?.jobs?.ensure()
        app?.send()
    }

    internal fun runJob(onEnd: () -> Unit): Boolean {
        val app = app ?: return false
        post { app.send(onEnd) }
        return true
    }

    private fun handleTap(app: App, context: Context, intent: Intent): Boolean {
        val data = messageData(intent)
        val isAgain = intent.flags and Intent.FLAG_ACTIVITY_LAUNCHED_FROM_HISTORY != 0
        val token = data["token"]
        if (isAgain || token == null || data["notification_id"] == null) return false
        intent.removeExtra("token") // the activity may be created again with the same intent
        report(token, "clicked", null) {}
        val tap = PushTap(data["url"], null, data)
        val isOpened = app.options.onTap?.invoke(context, tap) ?: false
        if (!isOpened && tap.url != null) openLink(context, tap.url)
        return true
    }

    private fun report(token: String, event: String, action: String?, done: (PushResult) -> Unit) {
        withQueue(done) { queue, settled -> queue.report(event(token, event, action), settled) }
    }

    private fun event(token: String, event: String, action: String?): JSONObject =
        JSONObject().put("token", token).put("event", event).put("action", action)

    private fun change(body: JSONObject, callback: PushCallback?) =
        queued(callback) { queue, done -> queue.register(body, done) }

    private fun queued(callback: PushCallback?, call: (Queue, (PushResult) -> Unit) -> Unit) =
        withQueue({ tell(callback, it) }, call)

    private fun withQueue(done: (PushResult) -> Unit, call: (Queue, (PushResult) -> Unit) -> Unit) = post {
        val app = app
        if (app == null) {
            done(NOT_STARTED)
        } else {
            call(app.queue, done)
            app.jobs.ensure()
            app.send()
        }
    }

    private fun tell(callback: PushCallback?, result: PushResult) {
        if (callback != null) {
            main.post { callback.onResult(result) }
        } else if (result is PushResult.Refused) {
            app?.tellRefused(result)
        }
    }

    private fun post(task: () -> Unit) = worker.execute {
        try {
            task()
        } catch (error: Exception) { // the app goes on without push
            Log.e(TAG, "failed", error)
        }
    }

    private val NOT_STARTED = refused("not_started", "Call Push.start in Application.onCreate.")

    /** What [start] makes. All but [notifications] and [options] is used by the worker alone. */
    private class App(context: Context, val options: PushOptions) {
        private val store by lazy { Store(File(context.noBackupFilesDir, "pushsvc-${options.channel}.json")) }
        private val service = Service(options.service, options.channel)
        val jobs = Jobs(context, options.jobId)
        val notifications = Notifications(context, options)
        val queue by lazy { Queue(store, service, ::tellRefused) }

        fun tellRefused(result: PushResult.Refused) {
            Log.w(TAG, "refused: $result")
            options.onRefused?.let { listener -> main.post { listener(result) } }
        }

        /** [onEnd] comes before the next job, which would stop the one that calls this. */
        fun send(onEnd: () -> Unit = {}) {
            val delay = try {
                queue.send()
            } finally {
                onEnd()
            }
            if (delay == null) jobs.cancel() else jobs.schedule(delay)
        }

        fun categories(): Pair<PushResult, List<PushCategory>?> {
            val body = queue.device(store.address ?: return refused("not_registered", "No address yet.") to null)
            return when (val answer = service.post("/preferences", body, proof = "categories")) {
                is Answer.Accepted -> PushResult.Done to read(answer.body.getJSONArray("categories"))
                is Answer.Later -> refused("unavailable", answer.reason) to null
                is Answer.Refused -> answer.result to null
            }
        }

        fun joinAsTestDevice(invitation: String): PushResult {
            send() // a registration that waits
            val id = store.subscriptionId
            if (id == null || !store.isSubscribed) return refused("not_registered", "Not subscribed yet.")
            val body = JSONObject().put("invitation", invitation).put("subscription_id", id)
            return when (val answer = service.post("/test-device/${options.channel}/join", body, proof = "name")) {
                is Answer.Accepted -> PushResult.Done
                is Answer.Later -> refused("unavailable", answer.reason)
                is Answer.Refused -> answer.result
            }
        }

        private fun read(list: JSONArray) = List(list.length()) { index ->
            val entry = list.getJSONObject(index)
            val name = entry.getString("name")
            PushCategory(entry.getString("key"), name, entry.optString("description"), entry.optBoolean("chosen"))
        }

        fun status() = PushStatus(store.isSubscribed, store.address, store.subscriptionId, store.queue.size)
    }
}

package pushsvc.android

import java.util.Locale
import java.util.TimeZone
import kotlin.random.Random
import org.json.JSONArray
import org.json.JSONObject

private const val MAX_QUEUE = 200
private const val MAX_EVENTS = 20
private const val MAX_WAIT_MS = 6 * 3_600_000L

/** Sends what the app wants, in order, and keeps what the service has not answered. Used by one thread. */
internal class Queue(
    private val store: Store,
    private val service: Service,
    private val onUnheard: (PushResult.Refused) -> Unit,
    private val now: () -> Long = System::currentTimeMillis,
) {
    private val callbacks = mutableMapOf<Long, (PushResult) -> Unit>()

    fun register(body: JSONObject, callback: (PushResult) -> Unit) {
        if (!store.isSubscribed) return callback(refused("unsubscribed", "Call `subscribe` first."))
        if (body.has("external_id")) drop("superseded", "A later login replaces it.") { it.isLogin }
        if (body.length() == 0) drop("superseded", "A later registration replaces it.") { it.isPlain }
        add(Entry.REGISTER, body, callback)
    }

    fun choose(choices: JSONObject, callback: (PushResult) -> Unit) {
        if (!store.isSubscribed) return callback(refused("unsubscribed", "Call `subscribe` first."))
        add(Entry.CHOOSE, choices, callback)
    }

    fun report(event: JSONObject, callback: (PushResult) -> Unit) = add(Entry.EVENT, event, callback)

    fun subscribe(callback: (PushResult) -> Unit) {
        drop("superseded", "The device subscribes again.") { it.kind == Entry.UNSUBSCRIBE }
        store.isSubscribed = true
        register(JSONObject(), callback)
    }

    fun unsubscribe(callback: (PushResult) -> Unit) {
        drop("unsubscribed", "The device unsubscribed.") { it.kind != Entry.EVENT }
        store.isSubscribed = false
        val address = store.registered ?: store.address
        store.save()
        if (address == null) return callback(PushResult.Done)
        add(Entry.UNSUBSCRIBE, JSONObject().put("provider_token", address), callback)
    }

    /** The app has this address now. An unsubscribed device only remembers it. */
    fun address(address: String, callback: (PushResult) -> Unit) {
        store.address = address
        if (store.isSubscribed) return register(JSONObject(), callback)
        store.save()
        callback(refused("unsubscribed", "Call `subscribe` first."))
    }

    /** Returns after how many milliseconds to try again, or null if nothing waits for the service. */
    fun send(): Long? {
        while (true) {
            val next = next() ?: return null
            val wait = store.notBefore - now()
            // A longer one comes from a clock that was set back.
            if (wait in 1..MAX_WAIT_MS) return wait(wait, "The service asked to wait.")
            val entries = if (next.kind == Entry.EVENT) events() else listOf(next)
            when (val answer = call(next, entries)) {
                is Answer.Accepted -> settle(entries, PushResult.Done)
                is Answer.Refused -> settle(entries, answer.result)
                is Answer.Later -> return later(answer)
            }
            registerIfNeeded(next)
        }
    }

    private fun next(): Entry? = store.queue.firstOrNull {
        when (it.kind) {
            Entry.REGISTER -> store.address != null
            Entry.CHOOSE -> store.registered != null
            else -> true
        }
    }

    private fun events() = store.queue.filter { it.kind == Entry.EVENT }.take(MAX_EVENTS)

    private fun call(next: Entry, entries: List<Entry>): Answer = when (next.kind) {
        Entry.REGISTER -> registered(next)
        Entry.CHOOSE -> service.post(
            "/preferences",
            device(store.registered).put("choices", next.body),
            proof = "categories",
        )
        Entry.UNSUBSCRIBE ->
            service.post("/unsubscribe", JSONObject(next.body.toString()).put("platform", "android"), "message")
        else ->
            service.post("/events", JSONObject().put("events", JSONArray(entries.map { it.body })), proof = null)
    }

    /**
     * Sends the previous address, and `auth` as the proof that it belonged to this app, so that the
     * subscription keeps its id, person, attributes and history.
     */
    private fun registered(entry: Entry): Answer {
        val address = store.address
        val body = device(address)
        entry.body.keys().forEach { body.put(it, entry.body.get(it)) }
        body.put("language", Locale.getDefault().toLanguageTag())
        body.put("timezone", TimeZone.getDefault().id)
        if (store.registered != null && store.registered != address) {
            body.put("previous_endpoint", store.registered)
        }
        val answer = service.post("/subscribe", body, proof = "subscriptionId")
        if (answer is Answer.Accepted) {
            store.registered = address
            store.subscriptionId = answer.body.getString("subscriptionId")
        }
        return answer
    }

    fun device(address: String?): JSONObject =
        JSONObject().put("platform", "android").put("provider_token", address).put("auth", store.auth)

    /** A refused change leaves the device unregistered, if it came with the first call or a new address. */
    private fun registerIfNeeded(sent: Entry) {
        val isRegistered = store.address == null || store.registered == store.address
        val isQueued = store.queue.any { it.kind == Entry.REGISTER }
        if (sent.kind == Entry.REGISTER && !sent.isPlain && !isRegistered && !isQueued) {
            store.add(Entry.REGISTER, JSONObject())
            store.save()
        }
    }

    private fun later(answer: Answer.Later): Long {
        store.failures = (store.failures + 1).coerceAtMost(20)
        val backoff = (30_000L shl (store.failures - 1).coerceAtMost(7)).coerceAtMost(3_600_000)
        val wait = answer.afterMs ?: (backoff + Random.nextLong(backoff / 2)) // not all phones at once
        // Without an answer the phone was offline: the next call of the app tries again.
        store.notBefore = if (answer.isAnswered) now() + wait else 0
        return wait(wait, answer.reason)
    }

    private fun wait(ms: Long, reason: String): Long {
        store.save()
        callbacks.values.toList().also { callbacks.clear() }.forEach { it(PushResult.Waiting(reason)) }
        return ms
    }

    private fun settle(entries: List<Entry>, result: PushResult) {
        store.queue.removeAll(entries)
        store.failures = 0
        store.notBefore = 0
        store.save()
        entries.forEach { tell(it, result) }
    }

    private fun drop(code: String, detail: String, which: (Entry) -> Boolean) {
        val dropped = store.queue.filter(which)
        store.queue.removeAll(dropped)
        dropped.forEach { callbacks.remove(it.id)?.invoke(refused(code, detail)) }
    }

    private fun tell(entry: Entry, result: PushResult) {
        val callback = callbacks.remove(entry.id)
        if (callback != null) callback(result) else if (result is PushResult.Refused) onUnheard(result)
    }

    private fun add(kind: String, body: JSONObject, callback: (PushResult) -> Unit) {
        if (store.queue.size >= MAX_QUEUE) {
            val event = store.queue.firstOrNull { it.kind == Entry.EVENT }
                ?: return callback(refused("queue_full", "$MAX_QUEUE calls wait for the service."))
            drop("queue_full", "Later calls replace this report.") { it === event }
        }
        val entry = store.add(kind, body)
        callbacks[entry.id] = callback
        store.save()
    }
}

internal fun refused(code: String, detail: String) = PushResult.Refused(0, code, detail)

package pushsvc.android

import android.util.AtomicFile
import android.util.Base64
import android.util.Log
import java.io.File
import java.io.FileNotFoundException
import java.io.IOException
import java.security.SecureRandom
import org.json.JSONArray
import org.json.JSONException
import org.json.JSONObject

internal const val TAG = "pushsvc"

/** A call that the service has not answered yet. */
internal class Entry(val id: Long, val kind: String, val body: JSONObject) {
    val isLogin get() = kind == REGISTER && body.has("external_id")
    val isPlain get() = kind == REGISTER && body.length() == 0

    companion object {
        const val REGISTER = "register"
        const val CHOOSE = "choose"
        const val UNSUBSCRIBE = "unsubscribe"
        const val EVENT = "event"
    }
}

/**
 * What the kit knows, in one file. It is outside of the phone's backups: restored on another phone,
 * `auth` would give it the subscription of this one. Used by one thread.
 */
internal class Store(file: File) {
    private val file = AtomicFile(file)
    private val fields = read()

    val auth: String
    val queue = mutableListOf<Entry>()
    var address: String? by Field("address")
    var subscriptionId: String? by Field("subscription_id")

    /** The address that the service has. */
    var registered: String? by Field("registered")

    var isSubscribed: Boolean
        get() = fields.optBoolean("is_subscribed", true)
        set(value) {
            fields.put("is_subscribed", value)
        }

    /** The service asked to be left alone until then, in milliseconds. */
    var notBefore: Long
        get() = fields.optLong("not_before")
        set(value) {
            fields.put("not_before", value)
        }

    /** Attempts in a row that failed. */
    var failures: Int
        get() = fields.optInt("failures")
        set(value) {
            fields.put("failures", value)
        }

    init {
        auth = fields.optString("auth").ifEmpty { randomAuth().also { fields.put("auth", it) } }
        val entries = fields.optJSONArray("queue") ?: JSONArray()
        for (index in 0 until entries.length()) {
            val entry = entries.optJSONObject(index) ?: continue
            val body = entry.optJSONObject("body") ?: JSONObject()
            queue += Entry(entry.optLong("id"), entry.optString("kind"), body)
        }
    }

    fun add(kind: String, body: JSONObject): Entry {
        val id = fields.optLong("last_id") + 1
        fields.put("last_id", id)
        return Entry(id, kind, body).also { queue += it }
    }

    /** Without space on the phone, the file stays as it was and the app goes on. */
    fun save() {
        val entries = queue.map {
            JSONObject().put("id", it.id).put("kind", it.kind).put("body", it.body)
        }
        fields.put("queue", JSONArray(entries))
        try {
            val stream = file.startWrite()
            try {
                stream.write(fields.toString().toByteArray())
                file.finishWrite(stream)
            } catch (error: IOException) {
                file.failWrite(stream)
                throw error
            }
        } catch (error: IOException) {
            Log.w(TAG, "not stored", error)
        }
    }

    private fun read(): JSONObject = try {
        JSONObject(file.readFully().decodeToString())
    } catch (error: FileNotFoundException) {
        JSONObject()
    } catch (error: IOException) {
        unreadable(error)
    } catch (error: JSONException) {
        unreadable(error)
    }

    private fun unreadable(error: Exception): JSONObject {
        Log.w(TAG, "the stored state is unreadable; the device registers anew", error)
        return JSONObject()
    }

    private class Field(private val name: String) {
        operator fun getValue(store: Store, property: Any?): String? =
            store.fields.optString(name).ifEmpty { null }

        operator fun setValue(store: Store, property: Any?, value: String?) {
            store.fields.put(name, value)
        }
    }
}

/** 16 random bytes that only this app and the service know. */
private fun randomAuth(): String {
    val bytes = ByteArray(16).also { SecureRandom().nextBytes(it) }
    return Base64.encodeToString(bytes, Base64.URL_SAFE or Base64.NO_PADDING or Base64.NO_WRAP)
}

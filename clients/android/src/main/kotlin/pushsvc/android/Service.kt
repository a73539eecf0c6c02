package pushsvc.android

import java.io.IOException
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.MalformedURLException
import java.net.URL
import java.net.UnknownServiceException
import org.json.JSONException
import org.json.JSONObject

private const val CONNECT_MS = 10_000
private const val READ_MS = 20_000
private const val MAX_BODY = 64 * 1024
private const val MAX_RETRY_AFTER_MS = 6 * 3_600_000L

/** What the service said to one call. */
internal sealed class Answer {
    class Accepted(val body: JSONObject) : Answer()

    /** [afterMs] is null if the service did not answer, or did not name a time. */
    class Later(val reason: String, val isAnswered: Boolean, val afterMs: Long?) : Answer()

    class Refused(val result: PushResult.Refused) : Answer()
}

/** The public HTTP calls of pushsvc. They block, and never throw. */
internal class Service(private val address: String, private val channel: String) {
    /** [proof] is a field that an accepted body has: a Wi-Fi's sign-in page also answers 200. */
    fun post(path: String, body: JSONObject, proof: String?): Answer {
        val connection = try {
            URL(address.trimEnd('/') + path).openConnection() as HttpURLConnection
        } catch (error: MalformedURLException) {
            return refused(0, "bad_address", "`service` is not a URL: $address")
        } catch (error: ClassCastException) {
            return refused(0, "bad_address", "`service` is not an https URL: $address")
        } catch (error: IOException) {
            return Answer.Later(error.toString(), false, null)
        }
        return try {
            send(connection, body)
            answer(connection, proof)
        } catch (error: UnknownServiceException) {
            refused(0, "cleartext", "The app may not use http: ${error.message}")
        } catch (error: IOException) {
            Answer.Later(error.toString(), false, null)
        } catch (error: RuntimeException) { // the platform's own code, such as a SecurityException
            refused(0, "internal", error.toString())
        } finally {
            connection.disconnect()
        }
    }

    private fun send(connection: HttpURLConnection, body: JSONObject) {
        val bytes = body.toString().toByteArray()
        connection.requestMethod = "POST"
        connection.doOutput = true
        connection.connectTimeout = CONNECT_MS
        connection.readTimeout = READ_MS
        connection.instanceFollowRedirects = false
        connection.setFixedLengthStreamingMode(bytes.size)
        connection.setRequestProperty("Content-Type", "application/json")
        connection.setRequestProperty("X-Channel-ID", channel)
        connection.setRequestProperty("User-Agent", "pushsvc-android/$VERSION")
        connection.outputStream.use { it.write(bytes) }
    }

    private fun answer(connection: HttpURLConnection, proof: String?): Answer {
        val status = connection.responseCode
        val stream = if (status < 400) connection.inputStream else connection.errorStream
        val body = parsed(stream?.use(::limited).orEmpty())
        val afterMs = retryAfter(connection)
        return when {
            status < 300 && (proof == null || body?.has(proof) == true) ->
                Answer.Accepted(body ?: JSONObject())
            status < 300 -> Answer.Later("The response is not the service's.", true, afterMs)
            status < 400 -> refused(status, "redirected", "`service` redirects: $address")
            status == 408 || status == 429 || status >= 500 || (status == 409 && afterMs != null) ->
                Answer.Later("HTTP $status ${body?.optString("code").orEmpty()}", true, afterMs)
            else -> refused(status, body?.optString("code").orEmpty(), detail(body, status))
        }
    }

    private fun retryAfter(connection: HttpURLConnection): Long? {
        val text = connection.getHeaderField("Retry-After") ?: return null
        val date = { connection.getHeaderFieldDate("Retry-After", 0) - System.currentTimeMillis() }
        val wait = text.trim().toLongOrNull()?.let { if (it > 1_000_000) null else it * 1_000 } ?: date()
        return wait.coerceIn(0, MAX_RETRY_AFTER_MS)
    }

    private fun detail(body: JSONObject?, status: Int): String {
        val first = body?.optJSONArray("errors")?.optJSONObject(0)
        val text = first?.let { "${it.optString("attr")}: ${it.optString("code")}, ${it.optString("detail")}" }
        return text ?: body?.optString("detail") ?: "HTTP $status"
    }

    private fun refused(status: Int, code: String, detail: String) =
        Answer.Refused(PushResult.Refused(status, code, detail))

    private fun limited(stream: InputStream): String {
        val bytes = ByteArray(MAX_BODY)
        var size = 0
        while (size < MAX_BODY) {
            val read = stream.read(bytes, size, MAX_BODY - size)
            if (read < 0) break
            size += read
        }
        return bytes.decodeToString(0, size)
    }

    private fun parsed(text: String): JSONObject? = try {
        JSONObject(text)
    } catch (error: JSONException) {
        null
    }
}

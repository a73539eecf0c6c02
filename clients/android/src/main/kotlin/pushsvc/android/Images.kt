package pushsvc.android

import android.graphics.Bitmap
import android.graphics.BitmapFactory
import android.util.Log
import java.io.ByteArrayOutputStream
import java.io.IOException
import java.net.HttpURLConnection
import java.net.URL

private const val LOAD_MS = 5_000
private const val MAX_BYTES = 4 * 1024 * 1024
private const val MAX_SIDE = 1_024

/** Null if it cannot be shown: the notification then comes without it. */
internal fun loadImage(url: String): Bitmap? = try {
    decoded(downloaded(url))
} catch (error: IOException) {
    Log.w(TAG, "no image", error)
    null
} catch (error: ClassCastException) { // neither http nor https
    null
}

private fun downloaded(url: String): ByteArray {
    val connection = URL(url).openConnection() as HttpURLConnection
    connection.connectTimeout = LOAD_MS
    connection.readTimeout = LOAD_MS
    val end = System.nanoTime() + LOAD_MS * 1_000_000L
    try {
        val bytes = ByteArrayOutputStream()
        connection.inputStream.use { stream ->
            val part = ByteArray(16 * 1024)
            var size = stream.read(part)
            while (size >= 0) {
                bytes.write(part, 0, size)
                if (bytes.size() > MAX_BYTES) throw IOException("more than $MAX_BYTES bytes")
                if (System.nanoTime() > end) throw IOException("slower than $LOAD_MS ms")
                size = stream.read(part)
            }
        }
        return bytes.toByteArray()
    } finally {
        connection.disconnect()
    }
}

private fun decoded(bytes: ByteArray): Bitmap? {
    val options = BitmapFactory.Options().apply { inJustDecodeBounds = true }
    BitmapFactory.decodeByteArray(bytes, 0, bytes.size, options)
    var sample = 1
    while (maxOf(options.outWidth, options.outHeight) / sample > MAX_SIDE) sample *= 2
    return BitmapFactory.decodeByteArray(
        bytes,
        0,
        bytes.size,
        BitmapFactory.Options().apply { inSampleSize = sample },
    )
}

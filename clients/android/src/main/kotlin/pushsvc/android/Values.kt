package pushsvc.android

import android.app.Notification
import android.content.Context

internal const val VERSION = "0.1.0"

/**
 * @property service the address of pushsvc, such as `https://push.example.com`
 * @property channel the channel's id
 * @property smallIcon the drawable that the status bar shows
 * @property channelId the app's notification channel for messages that name none, or one that the app
 *   has not created. The kit creates it.
 * @property channelName its name in the phone's settings
 * @property onTap is called for a tap on a notification or a button. It returns whether it opened
 *   something; otherwise the kit opens the link, or the app.
 * @property onBuild changes a notification before it is shown
 * @property onRefused is called on the main thread for everything that the service refused and for
 *   which there is no callback, or none any more
 * @property jobId the id of the kit's job. Change it if the app has a job with this id.
 */
class PushOptions @JvmOverloads constructor(
    val service: String,
    val channel: String,
    val smallIcon: Int,
    val channelId: String = "push",
    val channelName: String = "Notifications",
    val onTap: ((Context, PushTap) -> Boolean)? = null,
    val onBuild: ((Notification.Builder, Map<String, String>) -> Unit)? = null,
    val onRefused: ((PushResult.Refused) -> Unit)? = null,
    val jobId: Int = 1_886_745_715,
)

/** What became of a call. */
sealed class PushResult {
    /** The service stored it. */
    object Done : PushResult()

    /** It is in the queue, and is sent as soon as the service can be reached. */
    data class Waiting(val reason: String) : PushResult()

    /**
     * It was not done and is not repeated. [code] is a code of docs/errors.md, or one of the kit:
     * `not_started`, `not_registered`, `unsubscribed`, `superseded` (by a later login), `queue_full`,
     * `unavailable`, `bad_address`, `redirected`, `cleartext` and `internal`. [status] is 0 if the service was not asked.
     */
    data class Refused(val status: Int, val code: String, val detail: String) : PushResult()
}

/** Runs on the main thread, once. */
fun interface PushCallback {
    fun onResult(result: PushResult)
}

/** @property isChosen whether the device, or its person, receives notifications of this category */
data class PushCategory(val key: String, val name: String, val description: String, val isChosen: Boolean)

/** Runs on the main thread, once. [categories] is null unless [result] is [PushResult.Done]. */
fun interface PushCategoriesCallback {
    fun onResult(result: PushResult, categories: List<PushCategory>?)
}

/**
 * @property subscriptionId null until the service has stored the device
 * @property waiting how many calls and reports are in the queue
 */
data class PushStatus(
    val isSubscribed: Boolean,
    val address: String?,
    val subscriptionId: String?,
    val waiting: Int,
)

/**
 * The fields of a message outside its data, from Firebase's `RemoteMessage.notification`. A message
 * with `android.data_only` has none.
 *
 * @property icon the name of a drawable of the app
 * @property color `#rrggbb`
 */
data class PushContent @JvmOverloads constructor(
    val title: String? = null,
    val body: String? = null,
    val image: String? = null,
    val channelId: String? = null,
    val tag: String? = null,
    val count: Int? = null,
    val color: String? = null,
    val icon: String? = null,
)

/** @property action the id of the button, or null for the notification itself */
data class PushTap(val url: String?, val action: String?, val data: Map<String, String>)

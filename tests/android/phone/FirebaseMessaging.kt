package com.google.firebase.messaging

import com.google.android.gms.tasks.Task
import com.google.android.gms.tasks.Tasks
import org.robolectric.Robolectric

/**
 * In place of Google's class of this name, which needs Google's services on the phone. It hands the
 * address in [Google] to the app, or nothing, as an app gets that starts offline for the first time.
 * The other classes of Firebase are Google's.
 */
class FirebaseMessaging {
    val token: Task<String>
        get() = Google.address?.let { Tasks.forResult(it) } ?: Tasks.forException(offline())

    fun register(): Task<Void> {
        val address = Google.address ?: return Tasks.forException(offline())
        Robolectric.buildService(shop.PushService::class.java).create().get().onRegistered(address)
        return Tasks.forResult(null)
    }

    private fun offline() = java.io.IOException("SERVICE_NOT_AVAILABLE")

    companion object {
        @JvmStatic
        fun getInstance() = FirebaseMessaging()
    }
}

object Google {
    var address: String? = null
}

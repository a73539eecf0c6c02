package com.google.firebase.messaging

import android.content.Context

abstract class FirebaseMessagingService : Context() {
    open fun onNewToken(token: String) {}

    open fun onRegistered(installationId: String) {}

    open fun onMessageReceived(message: RemoteMessage) {}

    override fun getSharedPreferences(name: String, mode: Int) = TODO()
}

class RemoteMessage {
    val notification: Notification? = null
    val data: Map<String, String> = emptyMap()

    class Notification {
        val title: String? = null
        val body: String? = null
    }
}

class FirebaseMessaging {
    val token: Task<String> = TODO()

    fun register(): Task<Void> = TODO()

    companion object {
        fun getInstance(): FirebaseMessaging = TODO()
    }
}

abstract class Task<T> {
    abstract fun addOnSuccessListener(listener: (T) -> Unit): Task<T>
}

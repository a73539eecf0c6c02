"""What the workers of other push SDKs do, for workers that hold their handlers beside ours.

They do what the SDKs' published sources do with a message and with a click:
firebase-js-sdk, packages/messaging/src/listeners/sw-listeners.ts; OneSignal-Website-SDK,
src/sw/serviceWorker/ServiceWorker.ts.
"""

# Shows any message that has `notification`, if no page of the site is visible. Ignores clicks on
# notifications that it did not show.
FIREBASE = """
self.addEventListener("push", (event) => event.waitUntil((async () => {
  let message;
  try { message = event.data?.json(); } catch {}
  if (!message?.notification) return;
  const {title, ...options} = message.notification;
  await registration.showNotification(title ?? "", {...options, data: {FCM_MSG: message}});
})()));
self.addEventListener("notificationclick", (event) => {
  if (!event.notification.data?.FCM_MSG) return;
  event.stopImmediatePropagation();
  event.notification.close();
  event.waitUntil(clients.openWindow("/of-firebase"));
});
"""

# Shows messages with the id of one of its notifications. Opens the site at a click on any.
ONESIGNAL = """
self.addEventListener("push", (event) => event.waitUntil((async () => {
  const message = event.data.json();
  if (!message.custom?.i) throw new Error("of another provider");
  await registration.showNotification(message.title, {body: message.alert, data: message});
})().catch(() => {})));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(clients.openWindow("/of-onesignal"));
});
"""

HANDLERS = {"Firebase": FIREBASE, "OneSignal": ONESIGNAL}

# One message of each, as its service sends it.
MESSAGES = {
    "Firebase": {
        "from": "1234567890",
        "fcmMessageId": "0bbd45b8-3b6d-41d4-8d5a-4cb5b8e1c0f3",
        "notification": {"title": "Theirs", "body": "Of another service."},
    },
    "OneSignal": {
        "custom": {"i": "5c1b6a7e-61c7-4d0e-9f57-1c9a1c1e0b9d"},
        "title": "Theirs",
        "alert": "Of another service.",
    },
}

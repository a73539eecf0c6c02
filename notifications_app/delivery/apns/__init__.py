"""Apple Push Notification service, over HTTP/2."""

"""The FCM sandbox: Google's token endpoint, FCM v1 and Android devices."""

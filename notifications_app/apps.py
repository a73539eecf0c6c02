from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "notifications_app"
    verbose_name = "Notifications"

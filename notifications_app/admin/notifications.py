"""The list of notifications, and a page for each."""

from django.contrib import admin

from channels_app.console import ScopedAdmin
from notifications_app.models import Notification


@admin.register(Notification)
class NotificationAdmin(ScopedAdmin):
    list_display = ("id", "channel", "title", "status", "scheduled_at", "recipient_count")
    list_filter = ("status",)
    list_select_related = ("channel",)
    ordering = ("-id",)

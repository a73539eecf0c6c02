from django.contrib import admin

from notifications_app.models import Notification
from pushsvc.common.admin import ReadOnlyAdmin


@admin.register(Notification)
class NotificationAdmin(ReadOnlyAdmin):
    list_display = ("id", "channel", "title", "status", "scheduled_at", "recipient_count")
    list_filter = ("status",)
    list_select_related = ("channel",)
    show_full_result_count = False

"""The list of subscribers, and a page for each."""

from django.contrib import admin

from channels_app.console import ScopedAdmin
from subscriptions_app.models import Subscription


@admin.register(Subscription)
class SubscriptionAdmin(ScopedAdmin):
    list_display = ("id", "channel", "platform", "push_service", "registered_at", "expired_code")
    list_filter = ("platform",)
    list_select_related = ("channel",)
    ordering = ("-id",)

from django.contrib import admin

from pushsvc.common.admin import ReadOnlyAdmin
from subscriptions_app.models import Subscription


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    list_display = ("id", "channel", "platform", "push_service", "registered_at", "expired_code")
    list_filter = ("platform",)
    list_select_related = ("channel",)
    show_full_result_count = False

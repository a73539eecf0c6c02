"""Channels in the console. Secrets are never shown; commands make keys and show them once."""

from django.contrib import admin
from django.http import HttpRequest
from typing_extensions import override

from channels_app.models import Account, ApiKey, Channel, ProviderCredential, VapidKey
from pushsvc.common.admin import ModelAdmin, ReadOnlyAdmin


@admin.register(Account)
class AccountAdmin(ModelAdmin):
    list_display = ("name", "created_at")
    search_fields = ("name",)


@admin.register(Channel)
class ChannelAdmin(ReadOnlyAdmin):
    """Only what nothing else depends on may be changed here: the name and the channel's limits."""

    readonly_fields = (
        "id",
        "account",
        "created_at",
        "web_enabled",
        "android_enabled",
        "ios_enabled",
        "vapid_subject",
    )
    list_display = ("name", "id", "account", "web_enabled", "android_enabled", "ios_enabled")
    list_select_related = ("account",)
    search_fields = ("name", "id")

    @override
    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "channel", "scopes", "expires_at", "revoked_at", "last_used_at")
    list_select_related = ("channel",)
    exclude = ("secret_sha256",)


@admin.register(VapidKey)
class VapidKeyAdmin(ReadOnlyAdmin):
    list_display = ("public_key", "channel", "created_at", "retired_at")
    list_select_related = ("channel",)
    exclude = ("private_key_encrypted",)


@admin.register(ProviderCredential)
class ProviderCredentialAdmin(ReadOnlyAdmin):
    list_display = ("channel", "platform", "version", "facts", "updated_at", "paused_at")
    list_select_related = ("channel",)
    exclude = ("secret_encrypted",)

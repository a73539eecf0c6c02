"""Channels in the console. Secrets are never shown; keys are shown once, when they are made."""

from django.contrib import admin

from channels_app.console import ScopedAdmin
from channels_app.models import ApiKey, Channel, ProviderCredential, Role, VapidKey


@admin.register(Channel)
class ChannelAdmin(ScopedAdmin):
    """Only what nothing else depends on may be changed here: the name and the channel's limits."""

    channel_path = ""
    change_role = Role.MANAGER

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


@admin.register(ApiKey)
class ApiKeyAdmin(ScopedAdmin):
    list_display = ("__str__", "channel", "scopes", "expires_at", "revoked_at", "last_used_at")
    list_select_related = ("channel",)
    exclude = ("secret_sha256",)


@admin.register(VapidKey)
class VapidKeyAdmin(ScopedAdmin):
    list_display = ("public_key", "channel", "created_at", "retired_at")
    list_select_related = ("channel",)
    exclude = ("private_key_encrypted",)


@admin.register(ProviderCredential)
class ProviderCredentialAdmin(ScopedAdmin):
    list_display = ("channel", "platform", "version", "facts", "updated_at", "paused_at")
    list_select_related = ("channel",)
    exclude = ("secret_encrypted",)

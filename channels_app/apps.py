from auditlog.apps import AuditlogConfig
from django.apps import AppConfig
from typing_extensions import override

from channels_app.checks import register_checks


class ChannelsConfig(AppConfig):
    default = True
    name = "channels_app"
    verbose_name = "Channels"

    @override
    def ready(self) -> None:
        register_checks()


class AuditLogConfig(AuditlogConfig):  # type: ignore[misc] # it has no types
    """Ids of 64 bits (the migrations of channels_app widen the column), because entries are never
    deleted, and keys may cause ten a second in each channel."""

    default_auto_field = "django.db.models.BigAutoField"

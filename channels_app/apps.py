from django.apps import AppConfig
from typing_extensions import override

from channels_app.checks import register_checks


class ChannelsConfig(AppConfig):
    name = "channels_app"
    verbose_name = "Channels"

    @override
    def ready(self) -> None:
        register_checks()

from importlib import import_module
from typing import Any

from django.db import connection
from typing_extensions import override

from channels_app.management.output import DatabaseCommand

_MIGRATION = "subscriptions_app.migrations.0021_canonical_endpoints"


class Command(DatabaseCommand):
    help = (
        "Merges browsers' subscriptions whose endpoints are the same in another form, as the"
        " migration does. Safe to repeat, at any time."
    )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        changed, merged = import_module(_MIGRATION).merge(connection)
        self.stdout.write(f"{changed} endpoints changed, {merged} subscriptions merged into others")

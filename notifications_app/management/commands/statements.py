"""`manage.py statements`: prints the SQL of the pipeline, or PostgreSQL's plan for it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from typing_extensions import override

from channels_app.management.output import DatabaseCommand
from notifications_app.pipeline.statements import statements
from pushsvc.common.store import sql


class Command(DatabaseCommand):
    help = "Lists the names of the pipeline's statements. With a name: prints the statement."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", nargs="?")
        parser.add_argument(
            "--explain", action="store_true", help="print the database's plan; nothing is run"
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        found, name = statements(), options["name"]
        if name is None:
            self.stdout.write("\n".join(found))
        elif name not in found:
            raise CommandError(f"There is no statement {name!r}.")
        elif options["explain"]:
            text, parameters = found[name]
            self.stdout.write(
                "\n".join(line for (line,) in sql.rows(f"EXPLAIN {text}", parameters))
            )
        else:
            self.stdout.write(found[name].text.strip())

"""`manage.py sandbox`: the web push sandbox on its own, for teams that build against pushsvc."""

import asyncio
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from typing_extensions import override

from pushsvc.sandbox import WebSandbox

_INTRODUCTION = """\
Web push sandbox at {origin}, until Ctrl-C.

Let pushsvc send to it:
  WEBPUSH_TRUSTED_ORIGINS={origin}

Make a device, have its next request throttled, read what it received:
  curl -X POST {origin}/subscriptions
  curl -X PUT {origin}/subscriptions/ID/behaviour \\
    -d '{{"mode": "throttled", "times": 1, "retry_after": 5}}'
  curl {origin}/subscriptions/ID/messages
"""


class Command(BaseCommand):
    help = "Serve a web push service with made-up devices, for development and tests."
    # It needs neither the settings nor the database to be right.
    requires_system_checks = ()

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8030, help="0 is any free port")
        parser.add_argument(
            "--state-file", type=Path, help="keep the devices here over restarts (mode 600)"
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        try:
            sandbox = WebSandbox(host=host, port=port, state_file=options["state_file"])
        except OSError as error:
            raise CommandError(f"Cannot serve on {host}:{port}: {error}") from error
        asyncio.run(self._serve(sandbox))

    async def _serve(self, sandbox: WebSandbox) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, stopped.set)
        await sandbox.start()
        self.stdout.write(_INTRODUCTION.format(origin=sandbox.origin))
        self.stdout.flush()
        await stopped.wait()
        await sandbox.stop()

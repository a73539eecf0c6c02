"""What `make run` shows."""

import os
import sys

from pushsvc.supervisor.database import ADMIN_NAME
from pushsvc.supervisor.demo import Demo
from pushsvc.supervisor.http import Origin

_BANNER = """
pushsvc is ready.{result}

  Console    {url}/admin/   login {admin}, password {password}
  API        {url}/docs
  Channel    {channel}
  API key    {key}
  Logs       {logs}
{sandbox}
Send another one:

  curl {url}/send-notification \\
    -H 'Authorization: Key {key}' \\
    -H 'Content-Type: application/json' \\
    -d '{{"title": "Hello", "body": "It works."}}'

Ctrl-C stops everything.
"""
_SANDBOX_ON = """\
  Sandbox    {url}   a push service on this machine; the demo device lives in it,
             and nothing that is sent to the demo device leaves this machine
"""
_SANDBOX_OFF = """\
  Sandbox    off: no demo device, no demo notification; sends go to the real push services
"""


def say(line: str) -> None:
    """Prints; that the terminal is gone is no reason to leave processes behind."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for good)


def banner(demo: Demo, password: str, sandbox: Origin | None, result: str) -> str:
    shown = _SANDBOX_ON.format(url=sandbox.public_url) if sandbox else _SANDBOX_OFF
    return _BANNER.format(
        result=f" The demo notification: {result}." if result else "",
        url=demo.service.public_url,
        admin=ADMIN_NAME,
        password=password,
        channel=demo.channel_id,
        key=demo.api_key,
        logs=demo.home.root / "log",
        sandbox=shown,
    )

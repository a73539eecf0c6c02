"""What `make run` prints."""

import json
import os
import shlex
import sys

from local.embedded import is_given
from local.supervisor.database import ADMIN_NAME
from local.supervisor.demo import ENVIRONMENT_FILE, Demo
from local.supervisor.sandbox import Sandbox, given_setting

_BANNER = """
pushsvc is ready.{result}

  Console    {url}/admin/   login {admin}, password {password}
  API        {url}/docs
  Demo       {url}/demo   subscribe your browser and send to it
  Channel    {channel}
  API key    {key}
  Logs       {logs}

  Web        {web}
  Android    {android}
  iOS        {ios}
  Sandbox    {sandbox}

Send another notification:
{program}
  curl {url}/send-notification \\
    -H 'Authorization: Key {key}' \\
    -H 'Content-Type: application/json' \\
    -d '{message}'

Ctrl-C stops everything.
"""
_SANDBOX_ON = """\
push services on this machine, with the demo devices;
             messages to demo devices do not leave this machine"""
_SANDBOX_OFF = """\
off: no demo devices, no demo notification;
             Android and iOS need your own credentials (PUT /channel/:id/providers)"""


def say(line: str) -> None:
    """Prints. Ignores a closed terminal, so that `make run` can still stop its processes."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the rest of the run)


def banner(demo: Demo, password: str, sandbox: Sandbox | None, result: str) -> str:
    return _BANNER.format(
        result=f" The demo notification: {result}." if result else "",
        url=demo.service.public_url,
        admin=ADMIN_NAME,
        password=password,
        channel=demo.channel_id,
        key=demo.api_key,
        logs=demo.home.root / "log",
        web=_browsers(sandbox),
        android=_phones("android", sandbox, "FCM_API_BASE", "Google"),
        ios=_phones("ios", sandbox, "APNS_SERVER", "Apple"),
        sandbox=_SANDBOX_ON if sandbox else _SANDBOX_OFF,
        program=_program(demo) if sandbox else "",
        message=_message(sandbox),
    )


def _program(demo: Demo) -> str:
    """The lines that run an example program, which needs a browser of the sandbox."""
    environment = shlex.quote(str(demo.home.root / ENVIRONMENT_FILE))
    return f"\n  . {environment} && python3 examples/push.py\n"


def _browsers(sandbox: Sandbox | None) -> str:
    real = "the browsers' own push services"
    return f"the sandbox, {sandbox.controls['web'].public_url}, and {real}" if sandbox else real


def _phones(platform: str, sandbox: Sandbox | None, setting: str, company: str) -> str:
    """Where the platform's messages go. `setting`: the setting that names another server than the
    company's."""
    if sandbox and platform in sandbox.controls:
        address = sandbox.controls[platform].public_url
        return f"the sandbox, {address}, not {company}"
    destination = f"where {setting} says" if is_given(setting) else company
    return f"{destination}; {given_setting(platform)} is given" if sandbox else destination


def _message(sandbox: Sandbox | None) -> str:
    message: dict[str, object] = {"title": "Hello", "body": "It works."}
    if sandbox:
        message["target_platforms"] = list(sandbox.controls)
    return json.dumps(message)

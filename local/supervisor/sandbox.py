"""The sandbox of `make run`: which platforms use it, its ports, and its command."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local.embedded import Home, is_given
from local.embedded.server import free_port
from local.supervisor.http import BUSY_SECONDS, Origin

# The control interface of each platform returns 200 for this path when it is ready.
PROBES = {"web": "/messages", "android": "/messages", "ios": "/apns"}

_HOST = "127.0.0.1"
_RECORD = "run/sandbox.json"
_EXAMPLE_RECEIVER = f"http://{_HOST}:9100"  # examples/webhook.py
# Also the defaults of `python -m sandbox`. Others are chosen if these are in use.
_PORTS = {"web": 8030, "fcm": 8031, "apns": 8032, "apns_control": 8033}
# If one of these is given, the platform does not use the sandbox, because it needs all of them.
_OWN_SETTINGS = {
    "android": ("FCM_API_BASE", "GOOGLE_TOKEN_URI"),
    "ios": ("APNS_SERVER", "PROVIDER_CA_FILE"),
}


@dataclass(frozen=True)
class Sandbox:
    """`controls`: the control interfaces, which create devices and credentials, of the platforms
    that use the sandbox."""

    controls: Mapping[str, Origin]
    ports: Mapping[str, int]
    folder: Path

    @classmethod
    def of(cls, home: Home, *, taken: int) -> "Sandbox":
        """Uses the ports of the last start if they are free, so that endpoints stay valid. Never
        uses the port `taken`, which the web process is about to use."""
        saved = home.read_json(_RECORD)
        wanted = {**_PORTS, **saved} if isinstance(saved, dict) else _PORTS
        ports = {name: free_port(wanted[name] if wanted[name] != taken else 0) for name in _PORTS}
        home.write_json(_RECORD, ports)
        control = {"web": "web", "android": "fcm", "ios": "apns_control"}
        return cls(
            controls={
                platform: Origin(_HOST, ports[name], f"http://{_HOST}:{ports[name]}", BUSY_SECONDS)
                for platform, name in control.items()
                if not given_setting(platform)
            },
            ports=ports,
            folder=home.folder("sandbox"),
        )

    def settings(self) -> dict[str, str]:
        """The settings with which the platforms use the sandbox, and webhooks the example of a
        receiver. Keeps given trusted origins."""
        given = os.environ.get("WEBPUSH_TRUSTED_ORIGINS", "").split(",")
        origins = [*filter(None, map(str.strip, given)), self.controls["web"].public_url]
        chosen = {"WEBPUSH_TRUSTED_ORIGINS": ",".join(origins)}
        if not os.environ.get("WEBHOOK_TRUSTED_ORIGINS"):
            chosen["WEBHOOK_TRUSTED_ORIGINS"] = _EXAMPLE_RECEIVER
        if fcm := self.controls.get("android"):
            chosen["FCM_API_BASE"] = fcm.public_url
            chosen["GOOGLE_TOKEN_URI"] = f"{fcm.public_url}/token"
        if "ios" in self.controls:
            chosen["APNS_SERVER"] = self.apns_server
            chosen["PROVIDER_CA_FILE"] = str(self._ca_file)
        return chosen

    @property
    def apns_server(self) -> str:
        return f"{_HOST}:{self.ports['apns']}"

    @property
    def command(self) -> str:
        ports = " ".join(
            f"--{'' if name == 'web' else name.replace('_', '-') + '-'}port {port}"
            for name, port in self.ports.items()
        )
        return (
            f"python -m sandbox --host {_HOST} {ports}"
            f" --state-dir {shlex.quote(str(self.folder))}"
            f" --ca-file {shlex.quote(str(self._ca_file))}"
        )

    @property
    def _ca_file(self) -> Path:
        return self.folder / "ca.pem"


def given_setting(platform: str) -> str:
    """The name of a setting of the platform that the environment gives, or ""."""
    return next(filter(is_given, _OWN_SETTINGS.get(platform, ())), "")

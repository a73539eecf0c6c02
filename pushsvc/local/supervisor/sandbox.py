"""The sandbox of `make run`: which platforms go to it, where it is, and how it is started."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pushsvc.local.embedded import Home, is_given
from pushsvc.local.embedded.server import free_port
from pushsvc.local.supervisor.http import Origin

# What each platform's control interface answers with 200 when it is there.
PROBES = {"web": "/messages", "android": "/messages", "ios": "/apns"}

_HOST = "127.0.0.1"
_RECORD = "run/sandbox.json"
# What `manage.py sandbox` takes too, if these are free.
_PORTS = {"web": 8030, "fcm": 8031, "apns": 8032, "apns_control": 8033}
# A platform with one of its own settings given goes where they say: half of them would not work.
_OWN_SETTINGS = {
    "android": ("FCM_API_BASE", "GOOGLE_TOKEN_URI"),
    "ios": ("APNS_SERVER", "PROVIDER_CA_FILE"),
}


@dataclass(frozen=True)
class Sandbox:
    """`controls`: where devices and credentials of each platform are made; only of those that go
    to the sandbox."""

    controls: Mapping[str, Origin]
    ports: Mapping[str, int]
    folder: Path

    @classmethod
    def of(cls, home: Home, *, taken: int) -> "Sandbox":
        """On the ports of the last start where they are free, so that endpoints stay good; never
        on the port `taken`, which somebody is about to use."""
        saved = home.read_json(_RECORD)
        wanted = {**_PORTS, **saved} if isinstance(saved, dict) else _PORTS
        ports = {name: free_port(wanted[name] if wanted[name] != taken else 0) for name in _PORTS}
        home.write_json(_RECORD, ports)
        control = {"web": "web", "android": "fcm", "ios": "apns_control"}
        return cls(
            controls={
                platform: Origin(_HOST, ports[name], f"http://{_HOST}:{ports[name]}")
                for platform, name in control.items()
                if not given_setting(platform)
            },
            ports=ports,
            folder=home.folder("sandbox"),
        )

    def settings(self) -> dict[str, str]:
        """What leads the platforms here, web's trusted origins those that are given and ours."""
        given = os.environ.get("WEBPUSH_TRUSTED_ORIGINS", "").split(",")
        origins = [*filter(None, map(str.strip, given)), self.controls["web"].public_url]
        chosen = {"WEBPUSH_TRUSTED_ORIGINS": ",".join(origins)}
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
            f"python manage.py sandbox --host {_HOST} {ports}"
            f" --state-dir {shlex.quote(str(self.folder))}"
            f" --ca-file {shlex.quote(str(self._ca_file))}"
        )

    @property
    def _ca_file(self) -> Path:
        return self.folder / "ca.pem"


def given_setting(platform: str) -> str:
    """The name of one of the platform's own settings that the environment gives, or ""."""
    return next(filter(is_given, _OWN_SETTINGS.get(platform, ())), "")

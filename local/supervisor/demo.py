"""The demo channel of `make run`, used as a client would: over HTTP only."""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from local.embedded.home import EmbeddedError, Home
from local.supervisor.http import Origin, Reply
from pushsvc.common import base64url

CHANNEL_NAME = "Demo"
TERMINAL = frozenset({"sent", "failed", "cancelled"})
DEMO_FILE = "demo.json"  # mode 600, because it has the API key and the sandbox's credentials
ENVIRONMENT_FILE = "demo.env"  # mode 600, because it has the API key
_PROJECT = "pushsvc-demo"

Device = dict[str, Any]


class _Maker(NamedTuple):
    """Paths of a platform's sandbox, and the `providers_config` entry for its credentials."""

    devices: str
    received: str  # to be filled in from a device
    credentials: str = ""
    entry: str = ""


_MAKERS = {
    "web": _Maker("/subscriptions", "/subscriptions/{id}/messages"),
    "android": _Maker(
        f"/projects/{_PROJECT}/devices",
        "/devices/{id}/messages",
        f"/projects/{_PROJECT}/service-accounts",
        "fcm_service_account",
    ),
    "ios": _Maker("/apns/devices", "/apns/devices/{token}/messages", "/apns/keys", "apns_key"),
}


@dataclass
class Demo:
    """One channel, its API key, and the sandbox devices that are or were subscribed to it.

    `credentials` belong to the same sandbox as the device. `is_proven`: the last notification
    reached all its recipients, so devices and credentials may be used again.
    """

    home: Home
    service: Origin
    channel_id: str
    api_key: str
    vapid_public_key: str
    devices: dict[str, Device] = field(default_factory=dict)  # by platform, as last subscribed
    credentials: dict[str, dict[str, str]] = field(default_factory=dict)
    is_proven: bool = True

    @classmethod
    def open(cls, home: Home, service: Origin, create: Callable[[str], dict[str, Any]]) -> "Demo":
        """The channel of the last start if it still exists, otherwise a new one."""
        saved = home.read_json(DEMO_FILE)
        if isinstance(saved, dict):
            demo = cls(home, service, **saved)
            if demo._call("GET", f"/channel/{demo.channel_id}").status == 200:
                return demo
        made = create(CHANNEL_NAME)
        demo = cls(home, service, made["channel_id"], made["api_key"], made["vapid_public_key"])
        demo._save()
        return demo

    def subscribe(self, sandboxes: Mapping[str, Origin]) -> None:
        """Subscribes one device of each platform's sandbox to the channel, and ends the others.

        The device of the last start is used again if the sandbox still has it and it worked.
        """
        self._unsubscribe_others(sandboxes)
        before = dict(self.devices)
        for platform, sandbox in sandboxes.items():
            self._choose(platform, sandbox)
        self._store_credentials(sandboxes)
        for platform in sandboxes:
            self._subscribe(platform, before.get(platform))
        self._save()

    def save_environment(self, sandboxes: Mapping[str, Origin]) -> None:
        """Writes what examples/README.md lists, for shells: `. var/demo.env`."""
        values = {
            "PUSHSVC_URL": self.service.public_url,
            "PUSHSVC_CHANNEL": self.channel_id,
            "PUSHSVC_KEY": self.api_key,
        }
        for platform, sandbox in sandboxes.items():
            values[f"PUSHSVC_SANDBOX_{platform.upper()}"] = sandbox.public_url
        if "web" in sandboxes:
            browser = _as_client("web", self.devices["web"])
            values["PUSHSVC_SUBSCRIPTION"] = json.dumps(browser)
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in values.items()]
        self.home.write(ENVIRONMENT_FILE, "".join(lines))

    def send(self, platforms: Mapping[str, Origin]) -> str:
        """Sends one notification to the devices of these platforms; returns its id."""
        message = {
            "title": "pushsvc",
            "body": "Hello from make run.",
            "target_platforms": list(platforms),
        }
        accepted = _expect(self._call("POST", "/send-notification", message), 202)
        return str(accepted["notification_id"])

    def notification(self, notification_id: str) -> dict[str, Any]:
        """The notification as the API returns it now."""
        shown: dict[str, Any] = _expect(self._call("GET", f"/notification/{notification_id}"), 200)
        return shown

    def note_result(self, shown: Mapping[str, Any]) -> None:
        """Records whether the notification reached all its recipients."""
        counts = shown["delivered_count"], shown["recipient_count"]
        self.is_proven = shown["status"] == "sent" and counts[0] == counts[1]
        self._save()

    def _unsubscribe_others(self, sandboxes: Mapping[str, Origin]) -> None:
        """Ends sandbox devices of platforms that now use the real push services."""
        for platform in self.devices.keys() - sandboxes.keys():
            body = _as_client(platform, self.devices[platform])
            _expect(self._call_as_device("/unsubscribe", body), 200)

    def _choose(self, platform: str, sandbox: Origin) -> None:
        maker, known = _MAKERS[platform], self.devices.get(platform)
        if known and self.is_proven and _is_there(sandbox, maker, known):
            return
        key = {"application_server_key": self.vapid_public_key} if platform == "web" else {}
        made = _expect(sandbox.request("POST", maker.devices, key), 201)
        self.devices[platform] = {"auth": _new_auth()} | made
        if maker.credentials:
            made = _expect(sandbox.request("POST", maker.credentials), 201)
            self.credentials[platform] = made

    def _store_credentials(self, sandboxes: Mapping[str, Origin]) -> None:
        """Stores the credentials at every start, because they may have been replaced or refused."""
        given = self.credentials.keys() & sandboxes.keys()
        entries = {_MAKERS[each].entry: json.dumps(self.credentials[each]) for each in given}
        if entries:
            body = {"providers_config": entries}
            _expect(self._call("PUT", f"/channel/{self.channel_id}/providers", body), 200)

    def _subscribe(self, platform: str, before: Device | None) -> None:
        device = self.devices[platform]
        body = _as_client(platform, device)
        if before and before != device:
            body |= _proof(before)
        _expect(self._call_as_device("/subscribe", body), 200, 201)

    def _call_as_device(self, path: str, body: object) -> Reply:
        return self.service.request("POST", path, body, {"X-Channel-ID": self.channel_id})

    def _call(self, method: str, path: str, body: object = None) -> Reply:
        headers = {"Authorization": f"Key {self.api_key}"}
        return self.service.request(method, path, body, headers)

    def _save(self) -> None:
        kept = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in {"home", "service"}
        }
        self.home.write_json(DEMO_FILE, kept)


def _expect(reply: Reply, *statuses: int) -> Any:
    if reply.status not in statuses:
        raise EmbeddedError(f"the demo failed: the service returned {reply.status}: {reply.body}")
    return reply.body


def _address(device: Device) -> str:
    return str(device.get("endpoint") or device["token"])


def _proof(before: Device) -> dict[str, str]:
    """The proof that the earlier device was ours. Older records of phones have no `auth`."""
    auth = (before.get("keys") or before).get("auth")
    return {"previous_endpoint": _address(before)} | ({"previous_auth": auth} if auth else {})


def _new_auth() -> str:
    return base64url.encode(os.urandom(16))


def _as_client(platform: str, device: Device) -> dict[str, Any]:
    """The fields that the device sends to the service."""
    if platform == "web":
        return {"endpoint": device["endpoint"], "keys": device["keys"]}
    own = {"auth": device["auth"]} if "auth" in device else {}
    return {"platform": platform, "provider_token": device["token"]} | own


def _is_there(sandbox: Origin, maker: _Maker, device: Device) -> bool:
    endpoint = device.get("endpoint")
    is_here = endpoint is None or str(endpoint).startswith(f"{sandbox.public_url}/")
    return is_here and sandbox.request("GET", maker.received.format(**device)).status == 200

"""The demo channel of `make run`, used as a client would: over HTTP only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pushsvc.embedded.home import EmbeddedError, Home
from pushsvc.supervisor.http import Origin, Reply

CHANNEL_NAME = "Demo"
TERMINAL = frozenset({"sent", "failed", "cancelled"})
_FILE = "demo.json"  # mode 600: it holds the API key


@dataclass
class Demo:
    """One channel, its API key, and the sandbox devices subscribed to it."""

    home: Home
    service: Origin
    channel_id: str
    api_key: str
    vapid_public_key: str
    devices: dict[str, dict[str, Any]]  # the sandbox's of each platform, as last subscribed

    @classmethod
    def open(cls, home: Home, service: Origin, create: Callable[[str], dict[str, Any]]) -> "Demo":
        """The channel of the last start if the service still knows it, else a new one."""
        saved = home.read_json(_FILE)
        if isinstance(saved, dict):
            demo = cls(home, service, **saved)
            if demo._call("GET", f"/channel/{demo.channel_id}").status == 200:
                return demo
        made = create(CHANNEL_NAME)
        demo = cls(home, service, made["channel_id"], made["api_key"], made["vapid_public_key"], {})
        demo._save()
        return demo

    def subscribe_web(self, sandbox: Origin) -> None:
        """Puts one sandbox browser on the channel: the last start's if the sandbox still has it."""
        known = self.devices.get("web")
        device = known if known and _is_there(sandbox, known) else self._new_browser(sandbox)
        body = {"endpoint": device["endpoint"], "keys": device["keys"]}
        if known and known is not device:
            body["previous_endpoint"] = known["endpoint"]
        headers = {"X-Channel-ID": self.channel_id}
        _expect(self.service.request("POST", "/subscribe", body, headers), 200, 201)
        self.devices["web"] = device
        self._save()

    def send(self) -> str:
        """Sends one notification to the devices; returns its id."""
        message = {
            "title": "pushsvc",
            "body": "Hello from make run.",
            "target_platforms": sorted(self.devices),
        }
        accepted = _expect(self._call("POST", "/send-notification", message), 202)
        return str(accepted["notification_id"])

    def notification(self, notification_id: str) -> dict[str, Any]:
        """What the statistics endpoint says of it now."""
        shown: dict[str, Any] = _expect(self._call("GET", f"/notification/{notification_id}"), 200)
        return shown

    def _new_browser(self, sandbox: Origin) -> dict[str, Any]:
        key = {"application_server_key": self.vapid_public_key}
        made: dict[str, Any] = _expect(sandbox.request("POST", "/subscriptions", key), 201)
        return made

    def _call(self, method: str, path: str, body: object = None) -> Reply:
        headers = {"Authorization": f"Key {self.api_key}"}
        return self.service.request(method, path, body, headers)

    def _save(self) -> None:
        self.home.write_json(
            _FILE,
            {
                "channel_id": self.channel_id,
                "api_key": self.api_key,
                "vapid_public_key": self.vapid_public_key,
                "devices": self.devices,
            },
        )


def _expect(reply: Reply, *statuses: int) -> Any:
    if reply.status not in statuses:
        raise EmbeddedError(f"the demo failed: an answer of {reply.status}: {reply.body}")
    return reply.body


def _is_there(sandbox: Origin, device: dict[str, Any]) -> bool:
    path = f"/subscriptions/{device['id']}/messages"
    is_here = str(device["endpoint"]).startswith(f"{sandbox.public_url}/")
    return is_here and sandbox.request("GET", path).status == 200

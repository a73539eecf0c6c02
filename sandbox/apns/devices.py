"""Devices and keys of the APNs sandbox, and what the devices received."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from sandbox.apns.behaviours import DEVICE_REPERTOIRE, KEY_REPERTOIRE
from sandbox.behaviours import Behaving
from sandbox.lines import LineFile
from sandbox.receipts import Receipt

DEFAULT_TEAM: Final = "SANDBOXTEA"
DEFAULT_TOPIC: Final = "com.example.app"

_TOKEN_BYTES: Final = 32
_ID_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


@dataclass(slots=True)
class ApnsReceipt(Receipt):
    """`connection`: the number of the connection. `open_streams`: how many requests are in flight
    on it, including this one. `payload` is None if content is not kept."""

    connection: int = 0
    open_streams: int = 1
    payload: bytes | None = None


@dataclass(slots=True, eq=False)
class ApnsDevice(Behaving[ApnsReceipt]):
    """An iPhone with one app. `deleted_at` is when the app was deleted, in Unix seconds."""

    repertoire = DEVICE_REPERTOIRE

    token: str
    topic: str
    deleted_at: float | None = None


@dataclass(slots=True, eq=False)
class ApnsKey(Behaving[Receipt]):
    """A team's key as developers download it. `private_key`: the text of the .p8 file."""

    repertoire = KEY_REPERTOIRE

    key_id: str
    team_id: str
    private_key: str = field(repr=False)
    topics: set[str]
    public_key: ec.EllipticCurvePublicKey = field(init=False)

    def __post_init__(self) -> None:
        loaded = load_pem_private_key(self.private_key.encode(), password=None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise TypeError("not an elliptic curve key")
        self.public_key = loaded.public_key()

    @property
    def credential(self) -> dict[str, str]:
        """The JSON for `apns_key` in `PUT /channel/:id/providers`."""
        return {
            "key": self.private_key,
            "key_id": self.key_id,
            "team_id": self.team_id,
            "topic": min(self.topics),
            "environment": "sandbox",
        }


class ApnsRegistry:
    """All keys and devices. With a state file they are kept over restarts, but receipts are not."""

    def __init__(self, state_file: Path | None) -> None:
        self._file = LineFile(state_file)
        self.keys: dict[str, ApnsKey] = {}
        self.devices: dict[str, ApnsDevice] = {}
        for entry in self._file.entries():
            self._restore(entry)

    def add_key(self, team_id: str, topic: str) -> ApnsKey:
        """Creates a key of the team, valid for `topic`."""
        private = ec.generate_private_key(ec.SECP256R1())
        text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        key_id = "".join(secrets.choice(_ID_LETTERS) for _ in range(10))
        key = self.keys[key_id] = ApnsKey(key_id, team_id, text, {topic})
        self._file.append(
            {"key_id": key_id, "team_id": team_id, "private_key": text, "topic": topic}
        )
        return key

    def add_device(self, topic: str) -> ApnsDevice:
        device = ApnsDevice(secrets.token_hex(_TOKEN_BYTES), topic)
        self.devices[device.token] = device
        self._file.append({"token": device.token, "topic": topic})
        return device

    def find(self, device_id: str) -> ApnsDevice | None:
        """The device with this token, in upper or lower case."""
        return self.devices.get(device_id.lower())

    def ids(self) -> list[str]:
        return list(self.devices)

    def delete(self, device: ApnsDevice, now: float) -> None:
        """Deletes the app: further requests get 410 Unregistered. Safe to repeat."""
        if device.deleted_at is None:
            device.deleted_at = now
            self._file.append({"deleted": device.token, "at": now})

    def clear(self) -> None:
        self.keys.clear()
        self.devices.clear()
        self._file.clear()

    def _restore(self, entry: dict[str, Any]) -> None:
        if "deleted" in entry:
            self.devices[entry["deleted"]].deleted_at = entry["at"]
        elif "token" in entry:
            self.devices[entry["token"]] = ApnsDevice(entry["token"], entry["topic"])
        else:
            self.keys[entry["key_id"]] = ApnsKey(
                entry["key_id"], entry["team_id"], entry["private_key"], {entry["topic"]}
            )

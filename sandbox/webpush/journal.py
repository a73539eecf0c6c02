"""Stores devices on disk, so that endpoints in a database still work after a restart.

The file has one JSON line for each device created or deleted. Its mode is 600, because it contains
the devices' private keys, although these devices do not exist.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from pushsvc.common import base64url
from sandbox.lines import LineFile
from sandbox.webpush.devices import Device, MismatchAnswer
from sandbox.webpush.encryption import UserAgentKeys

_SCALAR_LENGTH = 32


class Journal:
    def __init__(self, path: Path | None) -> None:
        self._lines = LineFile(path)

    def load(self, endpoint_of: Callable[[str], str]) -> list[Device]:
        """The devices written so far. Their endpoints are at the origin of this run."""
        devices: dict[str, Device] = {}
        for entry in self._lines.entries():
            if "deleted" in entry:
                devices[entry["deleted"]].is_deleted = True
            else:
                devices[entry["id"]] = _device(entry, endpoint_of(entry["id"]))
        return list(devices.values())

    def write_added(self, device: Device) -> None:
        scalar = device.private_key.private_numbers().private_value
        self._lines.append(
            {
                "id": device.id,
                "private_key": base64url.encode(scalar.to_bytes(_SCALAR_LENGTH, "big")),
                "auth": device.auth,
                "application_server_key": device.application_server_key,
                "mismatch_response": device.mismatch_response,
                "is_bridged": device.is_bridged,
            }
        )

    def write_deleted(self, device: Device) -> None:
        self._lines.append({"deleted": device.id})

    def clear(self) -> None:
        self._lines.clear()


def _device(entry: dict[str, Any], endpoint: str) -> Device:
    scalar = int.from_bytes(base64url.decode(entry["private_key"]), "big")
    private_key = ec.derive_private_key(scalar, ec.SECP256R1())
    return Device(
        entry["id"],
        endpoint,
        entry["application_server_key"],
        MismatchAnswer(entry["mismatch_response"]),
        entry.get("is_bridged", False),  # older files lack it
        keys=UserAgentKeys.of(private_key, base64url.decode(entry["auth"])),
    )

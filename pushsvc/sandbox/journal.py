"""Devices on disk, so that endpoints which a database remembers go on working after a restart.

One JSON line for each device made and each one deleted. The file holds private keys of devices
that do not exist; its mode is 600 all the same.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from pushsvc.sandbox import base64url
from pushsvc.sandbox.devices import Device, MismatchAnswer
from pushsvc.sandbox.webpush_encryption import UserAgentKeys

_SCALAR_LENGTH = 32


class Journal:
    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, endpoint_of: Callable[[str], str]) -> list[Device]:
        """The devices written so far; their endpoints are at the origin of this run."""
        if not self._path.exists():
            return []
        devices: dict[str, Device] = {}
        for line in self._path.read_text(encoding="ascii").splitlines():
            entry = json.loads(line)
            if "deleted" in entry:
                devices[entry["deleted"]].is_deleted = True
            else:
                devices[entry["id"]] = _device(entry, endpoint_of(entry["id"]))
        return list(devices.values())

    def write_added(self, device: Device) -> None:
        scalar = device.private_key.private_numbers().private_value
        self._append(
            {
                "id": device.id,
                "private_key": base64url.encode(scalar.to_bytes(_SCALAR_LENGTH, "big")),
                "auth": device.auth,
                "application_server_key": device.application_server_key,
                "mismatch_answer": device.mismatch_answer,
            }
        )

    def write_deleted(self, device: Device) -> None:
        self._append({"deleted": device.id})

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)

    def _append(self, entry: dict[str, Any]) -> None:
        """One write each, so that a killed process leaves whole lines."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{json.dumps(entry)}\n".encode("ascii"))
        finally:
            os.close(descriptor)


def _device(entry: dict[str, Any], endpoint: str) -> Device:
    scalar = int.from_bytes(base64url.decode(entry["private_key"]), "big")
    private_key = ec.derive_private_key(scalar, ec.SECP256R1())
    return Device(
        entry["id"],
        endpoint,
        UserAgentKeys.of(private_key, base64url.decode(entry["auth"])),
        entry["application_server_key"],
        MismatchAnswer(entry["mismatch_answer"]),
    )

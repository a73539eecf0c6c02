"""What pushsvc and the peers send to the sink: the same devices, keys and text."""

import json
import secrets
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from bench.sink import Sink
from pushsvc.common import base64url

TITLE: Final = "Bench"
BODY: Final = "b" * 184  # so that payloads for browsers have 343 bytes, also those of peers
TOKEN: Final = "t" * 64  # as long as a tracking token
_APNS_KEY_ID: Final = "KEY4567890"
_APNS_TEAM_ID: Final = "TEAM567890"
_TOPIC: Final = "com.example.app"
_PROJECT: Final = "pushsvc-bench"


@dataclass(frozen=True)
class Work:
    """`content`: the content of `file`, which peers read. `authority`: the file of the sink's
    issuer."""

    content: dict[str, Any]
    file: Path
    authority: Path


def make_work(folder: Path, sink: Sink, count: int) -> Work:
    content = {
        "ca": str(sink.authority),
        "payload": json.dumps(_payload(), separators=(",", ":")),
        "web": [_browser(sink) for _ in range(count)],
        "vapid": {**_vapid(), "subject": "mailto:bench@example.com"},
        "tokens": [secrets.token_hex(32) for _ in range(count)],
        "apns": {
            "origin": sink.origin,
            "key_file": str(_apns_key(folder)),
            "key_id": _APNS_KEY_ID,
            "team_id": _APNS_TEAM_ID,
            "topic": _TOPIC,
        },
        "fcm": {
            "origin": sink.origin,
            "project": _PROJECT,
            "token": "bench",
            "account_file": str(_service_account(folder, sink)),
        },
    }
    file = folder / "work.json"
    file.write_text(json.dumps(content))
    return Work(content, file, sink.authority)


def _payload() -> dict[str, str]:
    """The fields that pushsvc sends to a browser, with the same lengths."""
    notification_id = str(uuid.uuid4())
    return {"notification_id": notification_id, "title": TITLE, "body": BODY, "token": TOKEN}


def _browser(sink: Sink) -> dict[str, str]:
    return {
        "endpoint": f"{sink.origin}/push/{secrets.token_urlsafe(32)}",
        "p256dh": base64url.encode(_point(ec.generate_private_key(ec.SECP256R1()))),
        "auth": base64url.encode(secrets.token_bytes(16)),
    }


def _vapid() -> dict[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    secret = key.private_numbers().private_value.to_bytes(32, "big")
    return {"public": base64url.encode(_point(key)), "private": base64url.encode(secret)}


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _apns_key(folder: Path) -> Path:
    file = folder / "apns.p8"
    file.write_bytes(_pem(ec.generate_private_key(ec.SECP256R1())))
    return file


def _service_account(folder: Path, sink: Sink) -> Path:
    file = folder / "service_account.json"
    account = {
        "type": "service_account",
        "project_id": _PROJECT,
        "private_key_id": "bench",
        "private_key": _pem(rsa.generate_private_key(65537, 2048)).decode(),
        "client_email": f"bench@{_PROJECT}.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{sink.origin}/token",
    }
    file.write_text(json.dumps(account))
    return file


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

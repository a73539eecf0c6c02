"""Verifies webhooks by Standard Webhooks 1.0.0. No input or output happens here.

On `hmac`, because the library of Standard Webhooks raises many kinds of errors where a request is
malformed. A receiver needs one, so that it answers 400.
"""

import base64
import hmac
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pushsvc_client.errors import InvalidWebhook

_TOLERANCE_SECONDS: Final = 300
_PREFIX: Final = "whsec_"
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True)
class Webhook:
    """`id` is the same in every repeat of a message, so that a receiver can ignore repeats."""

    id: str
    type: str
    timestamp: str
    data: dict[str, Any]


def verify_webhook(body: bytes, headers: Mapping[str, str], secret: str) -> Webhook:
    """What the request says, if the owner of `secret` signed it in the last five minutes.

    `body` is what was received, byte by byte. Raises InvalidWebhook for a request that is forged,
    changed, old or malformed, and ValueError for a secret that cannot be one.
    """
    named = {name.lower(): value for name, value in headers.items()}
    message_id, seconds = named.get("webhook-id", ""), named.get("webhook-timestamp", "")
    _check_age(seconds)
    signature = _signature(_key(secret), _encoded(f"{message_id}.{seconds}.") + body)
    if not _is_among(signature, named.get("webhook-signature", "")):
        raise InvalidWebhook("no signature of this secret")
    try:
        said = json.loads(body)
        return Webhook(message_id, said["type"], said["timestamp"], said["data"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidWebhook("the body is no event") from error


def _encoded(header: str) -> bytes:
    """Web frameworks write bytes that are no UTF-8 as surrogates, which a plain encode refuses."""
    return header.encode(errors="surrogatepass")


def _check_age(seconds: str) -> None:
    if not _SECONDS.fullmatch(seconds):
        raise InvalidWebhook("no valid webhook-timestamp")
    if abs(time.time() - int(seconds)) > _TOLERANCE_SECONDS:
        raise InvalidWebhook("webhook-timestamp is not of the last five minutes")


def _key(secret: str) -> bytes:
    key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    if not key:
        raise ValueError("the secret is empty")
    return key


def _signature(key: bytes, signed: bytes) -> bytes:
    return b"v1," + base64.b64encode(hmac.digest(key, signed, "sha256"))


def _is_among(signature: bytes, given: str) -> bool:
    """Two are given while a secret is replaced: one of the old secret, one of the new."""
    return any(hmac.compare_digest(signature, _encoded(each)) for each in given.split(" "))

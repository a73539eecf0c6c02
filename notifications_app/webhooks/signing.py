"""Signatures of Standard Webhooks 1.0.0 (https://www.standardwebhooks.com/). Pure.

On `hmac`, because the library of Standard Webhooks 1.1.0 signs times of other zones than UTC
wrongly.
"""

import base64
import hmac
from collections.abc import Sequence

_PREFIX = "whsec_"


def headers(message_id: str, body: bytes, at: int, secrets: Sequence[str]) -> dict[str, str]:
    """The headers of a request, with a signature for each secret. `at`: seconds since 1970."""
    signed = f"{message_id}.{at}.".encode() + body
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(_signature(secret, signed) for secret in secrets),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()

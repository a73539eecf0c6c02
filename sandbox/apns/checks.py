"""What APNs requires of a request.

Apple, "Sending notification requests to APNs".
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sandbox.apns.aps import is_aps
from sandbox.apns.responses import rejected

MAX_PAYLOAD: Final = 4_096
MAX_COLLAPSE_ID: Final = 64

_PREFIX: Final = "/3/device/"
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_INTEGER: Final = re.compile(r"[0-9]{1,18}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PUSH_TYPES: Final = frozenset(
    {
        "alert", "background", "complication", "controls", "fileprovider", "liveactivity",
        "location", "mdm", "pushtotalk", "voip", "widgets",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApnsRequest:
    """`headers` in the order sent, with pseudo-header fields. Names are in lower case, and values
    have one character for each byte."""

    headers: Sequence[tuple[str, str]]
    body: bytes

    def get(self, name: str) -> str | None:
        """The value of the field, or None. Raises RejectedError if the field occurs twice."""
        values = [value for each, value in self.headers if each == name]
        if len(values) > 1:
            raise rejected("DuplicateHeaders")
        return values[0] if values else None


def device_token(request: ApnsRequest) -> str:
    """Returns the device token; the first check. Raises RejectedError."""
    path = request.get(":path") or ""
    if not path.startswith(_PREFIX):
        raise rejected("BadPath")
    token = path.removeprefix(_PREFIX)
    if not token:
        raise rejected("MissingDeviceToken")
    if not _HEX.fullmatch(token):
        raise rejected("BadDeviceToken")
    return token.lower()


def check_headers(request: ApnsRequest) -> str:
    """The checks between path and provider token. Returns the topic. Raises RejectedError."""
    if request.get(":method") != "POST":
        raise rejected("MethodNotAllowed")
    topic = request.get("apns-topic")
    if not topic:
        raise rejected("MissingTopic")
    _check_push_type(request)
    expiration = request.get("apns-expiration")
    if expiration is not None and not _INTEGER.fullmatch(expiration):
        raise rejected("BadExpirationDate")
    if len(request.get("apns-collapse-id") or "") > MAX_COLLAPSE_ID:
        raise rejected("BadCollapseId")
    own_id = request.get("apns-id")
    if own_id is not None and not _UUID.fullmatch(own_id):
        raise rejected("BadMessageId")
    return topic


def _check_push_type(request: ApnsRequest) -> None:
    """Also checks the priority, which must not be 10 for background pushes."""
    push_type = request.get("apns-push-type") or "alert"
    if push_type not in _PUSH_TYPES:
        raise rejected("InvalidPushType")
    priority = request.get("apns-priority") or ("5" if push_type == "background" else "10")
    if priority not in {"1", "5", "10"} or (push_type, priority) == ("background", "10"):
        raise rejected("BadPriority")


def check_payload(body: bytes) -> None:
    """Checks the payload; the last check. Raises RejectedError.

    For APNs, a body without a JSON object with `aps` is an empty payload. A key of `aps` that Apple
    does not document, or a value of another type, is rejected only here.
    """
    if len(body) > MAX_PAYLOAD:
        raise rejected("PayloadTooLarge")
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        raise rejected("PayloadEmpty") from None
    if not isinstance(payload, dict) or not isinstance(payload.get("aps"), dict):
        raise rejected("PayloadEmpty")
    if not is_aps(payload["aps"]):
        raise rejected("InvalidPayload")

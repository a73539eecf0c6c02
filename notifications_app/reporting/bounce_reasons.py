"""Why a recipient bounced, in words for people, and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from notifications_app.delivery.registry import TRANSPORTS
from pushsvc.common.platforms import Platform


@dataclass(frozen=True, slots=True)
class Words:
    """`title` is a few words, `meaning` a sentence; `remedy` "": nothing is to be done."""

    title: str
    meaning: str
    remedy: str = ""


def words_for(platform: Platform | None, code: str) -> Words:
    """Total: a code that is not known is its own title."""
    known = TRANSPORTS[platform].codes if platform else {}
    meaning = _PIPELINE.get(code) or known.get(code, "")
    title, remedy = _WORDS.get(code, (code.replace("_", " ").capitalize(), ""))
    return Words(title, meaning, remedy)


_PIPELINE: Final[Mapping[str, str]] = {
    "": "It bounced before reasons were kept by notification.",
    "credentials_refused": "It waited for credentials that the push service accepts, in vain.",
    "expired": "Its time to live, or an hour of attempts, was over before it could be handed over.",
    "internal_error": "A fault of ours: its outcome could not be found or stored.",
    "unsubscribed": "The subscription was gone or inactive when its turn came.",
}

_REPORT: Final = "Look into the log and report it."
_NONE: Final = "Nothing is to be done: its subscription is marked as expired."

# Title and remedy of each code that a bounce can have.
_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "": ("Reason not on record", ""),
    "bad_device_token": (
        "Device token unknown",
        "If there are many: is the environment (production or sandbox) that of the app?",
    ),
    "bad_keys": ("Browser's keys unusable", ""),
    "bad_request": ("Request found malformed", _REPORT),
    "credentials_refused": (
        "Credentials missing or refused",
        "Store credentials that the push service accepts, then send it again.",
    ),
    "device_token_not_for_topic": (
        "Device of another app",
        "If there are many: is the topic the bundle id of the app that registers?",
    ),
    "dropped": ("Discarded by the push service", ""),
    "endpoint_gone": ("Browser unsubscribed", _NONE),
    "endpoint_not_allowed": (
        "Address not allowed",
        "See WEBPUSH_ALLOWED_HOSTS and WEBPUSH_TRUSTED_ORIGINS.",
    ),
    "expired": ("Not handed over in time", "A longer time to live gives more time."),
    "expired_token": ("Device token expired", _NONE),
    "internal_error": ("Fault of the service", _REPORT),
    "invalid_argument": ("Field refused by Google", "The log of recipients names the field."),
    "malformed_token": ("Not a device token", "Does the app send its device token, in hex?"),
    "payload_too_large": ("Message too large", "Shorten it, or hand over less data."),
    "redirected": ("Answered with a redirect", ""),
    "refused": ("Refused by the push service", "The log of recipients has its words."),
    "sender_id_mismatch": (
        "Device of another Firebase project",
        "App and credentials have to be of the same Firebase project.",
    ),
    "third_party_auth": (
        "iOS or web token of Firebase",
        "Register such devices as ios or web, or upload the key in Firebase.",
    ),
    "token_invalid": (
        "Not a registration token",
        "If there are many: does the app send the token of FCM, whole?",
    ),
    "unexpected_answer": ("Answer not understood", ""),
    "unregistered": ("App removed", _NONE),
    "unsubscribed": ("Unsubscribed meanwhile", ""),
    "vapid_key_mismatch": ("Made with another VAPID key", ""),
    "vapid_refused": (
        "Signature refused",
        "If there are many: check the server's clock and the channel's VAPID subject.",
    ),
}

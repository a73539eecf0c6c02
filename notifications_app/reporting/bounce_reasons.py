"""Describes each bounce code in plain words, with a remedy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from notifications_app.delivery.registry import TRANSPORTS
from pushsvc.common.platforms import Platform


@dataclass(frozen=True, slots=True)
class Words:
    """`title` is a few words, `meaning` a sentence. `remedy` is "" if nothing needs to be done."""

    title: str
    meaning: str
    remedy: str = ""


# The parts of bounces that pages tell apart (APART): by code, in words, and the tone of a chart.
APART_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "stopped": ("Stopped", "quiet"),
    "opted_out": ("Opted out", "three"),
    "expired": ("Expired", "warn"),
}


def words_for(platform: Platform | None, code: str) -> Words:
    """The words for any code. The title of an unknown code is the code itself."""
    known = TRANSPORTS[platform].codes if platform else {}
    meaning = _PIPELINE.get(code) or known.get(code, "")
    title, remedy = _WORDS.get(code, (code.replace("_", " ").capitalize(), ""))
    return Words(title, meaning, remedy)


_PIPELINE: Final[Mapping[str, str]] = {
    "": "It bounced before reasons were recorded for each notification.",
    "credentials_refused": "It waited for an hour, but nobody stored accepted credentials.",
    "expired": "Its time to live, or an hour of attempts, ended before it was accepted.",
    "internal_error": "An error of the service: its outcome could not be evaluated or stored.",
    "not_personalizable": "It had no value for a placeholder, or no text was left.",
    "opted_out": "Its category was refused while the notification waited to be sent.",
    "person_changed": "Its device was another person's, or nobody's, when its turn came.",
    "stopped": "The notification was stopped before its turn came.",
    "unsubscribed": "The subscription was missing or inactive when its turn came.",
}

_SEE_LOG: Final = "Look into the service's log."
_NONE: Final = "Nothing needs to be done: its subscription has expired."

# Title and remedy of each code that a bounce can have.
_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "": ("Reason not recorded", ""),
    "bad_device_token": (
        "Device token unknown",
        "If there are many, check that the environment (production or sandbox) is the app's.",
    ),
    "bad_keys": ("Browser's keys unusable", ""),
    "bad_request": ("Request malformed", _SEE_LOG),
    "credentials_refused": (
        "Credentials missing or refused",
        "Store credentials that the push service accepts, then send it again.",
    ),
    "device_token_not_for_topic": (
        "Device of another app",
        "If there are many, check that the topic is the bundle id of the app that registers.",
    ),
    "dropped": ("Discarded by the push service", ""),
    "endpoint_gone": ("Browser unsubscribed", _NONE),
    "endpoint_not_allowed": (
        "Address not allowed",
        "See WEBPUSH_ALLOWED_HOSTS and WEBPUSH_TRUSTED_ORIGINS.",
    ),
    "expired": ("Not delivered in time", "Choose a longer time to live."),
    "expired_token": ("Device token expired", _NONE),
    "internal_error": ("FieldError of the service", _SEE_LOG),
    "invalid_argument": ("Field refused by Google", "The log of recipients names the field."),
    "malformed_token": ("Not a device token", "Check that the app sends its device token in hex."),
    "name_not_found": (
        "Push service no longer exists",
        "Nothing needs to be done: the subscription expires if several sends find this.",
    ),
    "not_personalizable": (
        "No value for a placeholder",
        "Give the placeholder a default. The log of recipients names it.",
    ),
    "opted_out": ("Category refused", ""),
    "payload_too_large": ("Message too large", "Shorten the text, or send less data."),
    "person_changed": (
        "Another person's device",
        "Nothing needs to be done: somebody signed out or in before the message was sent.",
    ),
    "redirected": ("Responded with a redirect", ""),
    "refused": ("Refused by the push service", "The log of recipients has its response."),
    "sender_id_mismatch": (
        "Device of another Firebase project",
        "The app and the credentials must belong to the same Firebase project.",
    ),
    "size_refused": (
        "Message too large for the browser",
        "Shorten the text, or send less data. Firefox for Android takes less than other browsers.",
    ),
    "stopped": ("Stopped", ""),
    "third_party_auth": (
        "iOS or web token of Firebase",
        "Register such devices as ios or web, or upload the key in Firebase.",
    ),
    "token_invalid": (
        "Not a registration token or installation id",
        "If there are many, check that the app sends the whole text.",
    ),
    "unauthorized": (
        "Signature refused",
        "If there are many, check the server's clock and the channel's VAPID subject.",
    ),
    "unexpected_response": ("Response not understood", ""),
    "unregistered": ("App removed", _NONE),
    "unsubscribed": ("Unsubscribed before delivery", ""),
    "vapid_key_mismatch": ("Subscribed with another VAPID key", ""),
    "vapid_refused": (
        "Subscribed with another VAPID key",
        "Pages must subscribe with the channel's key, and name it in `vapid_public_key`.",
    ),
}

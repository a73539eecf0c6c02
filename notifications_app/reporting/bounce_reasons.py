"""Describes each bounce code in plain words, with a remedy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext

from notifications_app.delivery.registry import TRANSPORTS
from pushsvc.common.platforms import Platform
from pushsvc.common.texts import later


@dataclass(frozen=True, slots=True)
class Words:
    """`title` is a few words, `meaning` a sentence. `remedy` is "" if nothing needs to be done."""

    title: str
    meaning: str
    remedy: str = ""


# The parts of bounces that pages tell apart (APART): by code, in words, and the tone of a chart.
APART_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "stopped": (later("Stopped"), "quiet"),
    "opted_out": (later("Opted out"), "three"),
    "expired": (later("Expired"), "warn"),
}


def words_for(platform: Platform | None, code: str) -> Words:
    """The words for any code. The title of an unknown code is the code itself."""
    known = TRANSPORTS[platform].codes if platform else {}
    meaning = _PIPELINE.get(code) or (gettext(known[code]) if code in known else "")
    title, remedy = _WORDS.get(code, (code.replace("_", " ").capitalize(), ""))
    return Words(title, meaning, remedy)


_PIPELINE: Final[Mapping[str, str]] = {
    "": later("It bounced before reasons were recorded for each notification."),
    "credentials_refused": later("It waited for an hour, but nobody stored accepted credentials."),
    "expired": later("Its time to live, or an hour of attempts, ended before it was accepted."),
    "internal_error": later(
        "An error of the service: its outcome could not be evaluated or stored."
    ),
    "not_personalizable": later("It had no value for a placeholder, or no text was left."),
    "opted_out": later("Its category was refused while the notification waited to be sent."),
    "person_changed": later("Its device was another person's, or nobody's, when its turn came."),
    "stopped": later("The notification was stopped before its turn came."),
    "unsubscribed": later("The subscription was missing or inactive when its turn came."),
}

_SEE_LOG: Final = later("Look into the service's log.")
_NONE: Final = later("Nothing needs to be done: its subscription has expired.")

# Title and remedy of each code that a bounce can have.
_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "": (later("Reason not recorded"), ""),
    "bad_device_token": (
        later("Device token unknown"),
        later(
            "If there are many, check that the environment (production or sandbox) is the app's."
        ),
    ),
    "bad_keys": (later("Browser's keys unusable"), ""),
    "bad_request": (later("Request malformed"), _SEE_LOG),
    "credentials_refused": (
        later("Credentials missing or refused"),
        later("Store credentials that the push service accepts, then send it again."),
    ),
    "device_token_not_for_topic": (
        later("Device of another app"),
        later(
            "If there are many, check that the topic is the bundle id of the app that registers."
        ),
    ),
    "dropped": (later("Discarded by the push service"), ""),
    "endpoint_gone": (later("Browser unsubscribed"), _NONE),
    "endpoint_not_allowed": (
        later("Address not allowed"),
        later("See WEBPUSH_ALLOWED_HOSTS and WEBPUSH_TRUSTED_ORIGINS."),
    ),
    "expired": (later("Not delivered in time"), later("Choose a longer time to live.")),
    "expired_token": (later("Device token expired"), _NONE),
    "internal_error": (later("Error of the service"), _SEE_LOG),
    "invalid_argument": (
        later("Field refused by Google"),
        later("The log of recipients names the field."),
    ),
    "malformed_token": (
        later("Not a device token"),
        later("Check that the app sends its device token in hex."),
    ),
    "name_not_found": (
        later("Push service no longer exists"),
        later("Nothing needs to be done: the subscription expires if several sends find this."),
    ),
    "not_personalizable": (
        later("No value for a placeholder"),
        later("Give the placeholder a default. The log of recipients names it."),
    ),
    "opted_out": (later("Category refused"), ""),
    "payload_too_large": (
        later("Message too large"),
        later("Shorten the text, or send less data."),
    ),
    "person_changed": (
        later("Another person's device"),
        later("Nothing needs to be done: somebody signed out or in before the message was sent."),
    ),
    "redirected": (later("Responded with a redirect"), ""),
    "refused": (
        later("Refused by the push service"),
        later("The log of recipients has its response."),
    ),
    "sender_id_mismatch": (
        later("Device of another Firebase project"),
        later("The app and the credentials must belong to the same Firebase project."),
    ),
    "size_refused": (
        later("Message too large for the browser"),
        later(
            "Shorten the text, or send less data. Firefox for Android takes less than other "
            "browsers."
        ),
    ),
    "stopped": (later("Stopped"), ""),
    "third_party_auth": (
        later("iOS or web token of Firebase"),
        later("Register such devices as ios or web, or upload the key in Firebase."),
    ),
    "token_invalid": (
        later("Not a registration token or installation id"),
        later("If there are many, check that the app sends the whole text."),
    ),
    "unauthorized": (
        later("Signature refused"),
        later("If there are many, check the server's clock and the channel's VAPID subject."),
    ),
    "unexpected_response": (later("Response not understood"), ""),
    "unregistered": (later("App removed"), _NONE),
    "unsubscribed": (later("Unsubscribed before delivery"), ""),
    "vapid_key_mismatch": (later("Subscribed with another VAPID key"), ""),
    "vapid_refused": (
        later("Subscribed with another VAPID key"),
        later("Pages must subscribe with the channel's key, and name it in `vapid_public_key`."),
    ),
}

"""The requests of devices, and the responses to them."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NoReturn

from rest_framework import serializers
from typing_extensions import override

from pushsvc.common.http.fields import (
    Id,
    Language,
    Text,
    refuse,
)
from pushsvc.common.platforms import Platform
from subscriptions_app.addresses import (
    Address,
    is_fcm_address,
    is_ios_token,
    url_spelling,
)
from subscriptions_app.devices.fields import Attributes, TimeZone
from subscriptions_app.devices.values import Facts, Previous
from subscriptions_app.http import MAX_IDENTITY_TOKEN, MAX_KEY, Auth, DeviceInput, KeysInput
from subscriptions_app.people.fields import ExternalId
from subscriptions_app.people.proof import Login
from subscriptions_app.tags.fields import Tags
from subscriptions_app.tags.services import TagChange

MAX_TOKEN: Final = 4096

_TOKENS: Final = {
    Platform.ANDROID: (
        is_fcm_address,
        "Must be an FCM registration token, or a Firebase installation id, as the app received it.",
    ),
    Platform.IOS: (is_ios_token, "Must be 32 to 200 hexadecimal digits."),
}


class SubscribeInput(DeviceInput):
    """A device, and what it reports. Undeclared fields are ignored, because browsers add their
    own, but a misspelling of a declared field is refused."""

    keys = KeysInput(required=False, help_text="A browser must give them.")
    attributes = Attributes(required=False)
    tags = Tags(help_text="All tags of the device. They replace the stored ones.")
    add_tags = Tags(help_text="Tags to add to the device. Not with `tags`.")
    remove_tags = Tags(help_text="Tags to remove from the device. Not with `tags`.")
    vapid_public_key = Text(
        min_length=1,
        max_length=MAX_KEY,
        required=False,
        help_text="Of a browser: the channel's public key that it subscribed with.",
    )
    auth = Auth(
        required=False,
        help_text="For phones: 16 random bytes that the app makes once and keeps. A phone proves"
        " itself with it, as a browser does with `keys.auth`.",
    )
    previous_endpoint = Text(
        min_length=1,
        max_length=MAX_TOKEN,
        required=False,
        help_text="The previous address of the device. It counts only with proof: `previous_auth`"
        " or `previous_subscription_id`.",
    )
    previous_auth = Text(
        min_length=1,
        max_length=MAX_KEY,
        required=False,
        help_text="The `auth` of the previous subscription.",
    )
    previous_subscription_id = Id(
        required=False, help_text="The `subscriptionId` of the previous subscription."
    )
    external_id = ExternalId(
        required=False,
        allow_null=True,
        help_text="The owner's id of the user whose device it is. null: nobody's (sign-out).",
    )
    identity_token = Text(
        min_length=1,
        max_length=MAX_IDENTITY_TOKEN,
        required=False,
        help_text="A JWT of the owner's backend, which proves `external_id` (docs/identity.md).",
    )
    timezone = TimeZone(
        required=False,
        help_text="An IANA name, such as `Europe/Berlin`, in any case. `GMT+02:00` is also read.",
    )
    language = Language(
        required=False,
        help_text="BCP 47, such as `de-AT`, or a locale such as `pt_BR`. It is stored in its"
        " canonical form.",
    )

    @override
    def narrow(self, name: str, platform: Platform) -> None:
        if platform == Platform.WEB:
            del self.fields["auth"]
            self.fields["keys"].required = True
        else:
            del self.fields["keys"]
            address = self.fields[name]
            address.validators = [*address.validators, partial(_check_token, platform)]

    @override
    def to_internal_value(self, data: dict[str, Any]) -> Any:
        known = super().to_internal_value(_without_placeholders(data))
        address: Address = known["address"]
        previous = known.get("previous_endpoint")
        return {
            "address": address,
            "facts": _facts(known),
            "previous": Previous(
                address=Address.of(address.platform, previous) if previous else None,
                auth=url_spelling(known.get("previous_auth", "")),
                id=known.get("previous_subscription_id"),
            ),
        }


def _facts(known: dict[str, Any]) -> Facts:
    keys = known.get("keys") or {"auth": known.get("auth", "")}
    key, login = known.get("vapid_public_key"), None
    if "external_id" in known:
        login = Login(known["external_id"], known.get("identity_token"))
    return Facts(
        **keys,
        vapid_public_key=url_spelling(key) if key else None,
        attributes=known.get("attributes"),
        timezone=known.get("timezone"),
        language=known.get("language"),
        tags=_tag_change(known),
        login=login,
    )


def _without_placeholders(data: dict[str, Any]) -> dict[str, Any]:
    """Removes a time zone and a language that stand for an unknown one."""

    def is_placeholder(name: str, value: object) -> bool:
        pattern = _PLACEHOLDERS.get(name)
        return pattern is not None and isinstance(value, str) and bool(pattern.fullmatch(value))

    return {name: each for name, each in data.items() if not is_placeholder(name, each)}


def _tag_change(known: dict[str, Any]) -> TagChange | None:
    """The change of tags. None if no field of tags was sent."""
    added, removed = known.get("add_tags"), known.get("remove_tags")
    if "tags" in known:
        if added is not None or removed is not None:
            detail = "Send `tags` alone, or `add_tags` and `remove_tags`."
            _refuse_field("tags", "not_combinable", detail)
        return TagChange(added=known["tags"], replaces=True)
    if added is None and removed is None:
        return None
    change = TagChange(added or [], removed or [])
    if not set(change.added).isdisjoint(change.removed):
        _refuse_field("remove_tags", "given_twice", "A tag is also in `add_tags`.")
    return change


def _refuse_field(name: str, code: str, detail: str) -> NoReturn:
    raise serializers.ValidationError({name: [serializers.ErrorDetail(detail, code=code)]})


# `Etc/Unknown` (CLDR) is what browsers report if they cannot read the zone; `und` is of BCP 47. A
# locale of Java that has only a region is `und-US` (Locale.toLanguageTag).
_PLACEHOLDERS: Final[Mapping[str, re.Pattern[str]]] = {
    "timezone": re.compile("(etc/unknown)?", re.IGNORECASE),
    "language": re.compile("(und([_-][a-z0-9]+)*)?", re.IGNORECASE | re.ASCII),
}


def _check_token(platform: Platform, text: str) -> None:
    fits, detail = _TOKENS[platform]
    if not fits(text):
        refuse("not_a_token", detail)


class SubscriptionOutput(serializers.Serializer[Any]):
    """The device's subscription."""

    message = serializers.CharField(help_text="For people.")
    subscriptionId = serializers.UUIDField(  # noqa: N815 (the interface's name)
        help_text="The subscription's id, which stays when the device subscribes again."
    )
    resubscribe = serializers.CharField(
        required=False,
        help_text="Only of a browser whose push service refused its VAPID key: the code of the"
        " refusal, `vapid_refused` or `vapid_key_mismatch`. It gets no messages. End its"
        " PushSubscription, subscribe with the key of `/web-push-key`, and send the new endpoint"
        " with `previous_endpoint` and proof.",
    )


class UnsubscribeOutput(serializers.Serializer[Any]):
    """That the device is not subscribed."""

    message = serializers.CharField(help_text="For people.")

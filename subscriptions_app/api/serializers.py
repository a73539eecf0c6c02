"""The inputs of devices, and the answers to them."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Self

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

from pushsvc.common.http.fields import Choice, Id, StrictSerializer, Text, refuse
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from subscriptions_app.addresses import (
    ANDROID_TOKEN,
    IOS_TOKEN,
    checked_auth,
    checked_p256dh,
    url_spelling,
)

MAX_ATTRIBUTES: Final = 10
MAX_ATTRIBUTE_NAME: Final = 50
MAX_ATTRIBUTE_TEXT: Final = 255
MAX_KEY: Final = 255
MAX_TOKEN: Final = 4096

_TOKENS: Final = {
    Platform.ANDROID: (ANDROID_TOKEN, "Must be 1 to 4096 ASCII characters without blanks."),
    Platform.IOS: (IOS_TOKEN, "Must be 32 to 200 hexadecimal digits."),
}


class WebKey(Text):
    """A key of the device, in any spelling of base64. It is stored as base64url without padding."""

    def __init__(self, check: Callable[[str], str], code: str, detail: str, **kw: Any) -> None:
        super().__init__(min_length=1, max_length=MAX_KEY, **kw)
        self._check, self._fault = check, (code, detail)

    @override
    def run_validation(self, data: Any = serializers.empty) -> str:
        text: str = super().run_validation(data)
        try:
            return self._check(text)
        except ValueError:
            refuse(*self._fault)


class Auth(WebKey):
    """RFC 8291 section 3.2. With it the device can prove later that it is the same device."""

    def __init__(self, **kw: Any) -> None:
        super().__init__(checked_auth, "not_16_bytes", "Must be 16 bytes, as base64url.", **kw)


class KeysInput(StrictSerializer):
    refuse_unknown = False

    p256dh = WebKey(
        checked_p256dh,
        "not_a_p256_point",
        "Must be an uncompressed point on P-256 (65 bytes), as base64url.",
        help_text="The browser's public key, base64url.",
    )
    auth = Auth(help_text="The browser's secret of 16 bytes, base64url.")


class AttributeValue(serializers.Field[Any, Any, Any, Any]):
    """A string or a number. true and false are refused."""

    _text = Text(max_length=MAX_ATTRIBUTE_TEXT)

    @override
    def to_internal_value(self, data: object) -> object:
        if isinstance(data, str):
            return self._text.run_validation(data)
        if type(data) not in (int, float):
            refuse("not_a_string_or_number", "Must be a string or a number.")
        return data

    @override
    def to_representation(self, value: object) -> object:
        return value


@extend_schema_field(
    {
        "title": "Attributes",
        "type": "object",
        "maxProperties": MAX_ATTRIBUTES,
        "description": "What the channel's owner knows of the subscriber. Names have at most"
        f" {MAX_ATTRIBUTE_NAME} characters.",
        "additionalProperties": {
            "title": "AttributeValue",
            "description": "A text or a number.",
            "oneOf": [{"type": "string", "maxLength": MAX_ATTRIBUTE_TEXT}, {"type": "number"}],
        },
    }
)
class Attributes(serializers.DictField):
    child = AttributeValue()

    @override
    def to_internal_value(self, data: object) -> dict[str, Any]:
        if not isinstance(data, dict):
            refuse("not_an_object", "Must be an object.")
        if len(data) > MAX_ATTRIBUTES:
            refuse("too_many", f"Must have at most {MAX_ATTRIBUTES} keys.")
        return super().to_internal_value(data)

    @override
    def run_child_validation(self, data: Mapping[str, Any]) -> Any:
        faults: dict[str, Any] = {
            name: [_LONG_NAME] for name in data if len(name) > MAX_ATTRIBUTE_NAME
        }
        try:
            values = super().run_child_validation(data)
        except serializers.ValidationError as error:
            faults = {**_by_name(error.detail), **faults}
        if faults:
            raise serializers.ValidationError(faults)
        return values


_LONG_NAME: Final = serializers.ErrorDetail(
    f"The name must be at most {MAX_ATTRIBUTE_NAME} characters long.", code="too_long"
)


def _by_name(detail: Any) -> dict[str, Any]:
    return dict(detail)


class DeviceInput(StrictSerializer):
    """Identifies a device. `address` is a browser's endpoint or a phone's token.

    For a phone, `provider_token` takes precedence over `endpoint`. For a browser, only `endpoint`
    counts. The other field is not validated. Undeclared fields are ignored, because browsers add
    their own.
    """

    refuse_unknown = False

    platform = Choice(
        PLATFORM_VALUES, default=Platform.WEB.value, help_text="What the device receives push by."
    )
    endpoint = Text(
        min_length=1,
        required=False,
        help_text="Of a browser: the endpoint of its PushSubscription. A phone may name its token"
        " here.",
    )
    provider_token = Text(
        min_length=1, required=False, help_text="Of a phone: its FCM or APNs token."
    )

    _address_field = "endpoint"

    @override
    @classmethod
    def checked(cls, data: object) -> dict[str, Any]:
        platform, is_by_token = Platform.WEB, False
        if isinstance(data, dict) and data.get("platform") in (Platform.ANDROID, Platform.IOS):
            platform = Platform(data["platform"])
            is_by_token = "provider_token" in data or "endpoint" not in data
        return dict(cls._for(platform, is_by_token).run_validation(data))

    @classmethod
    @cache
    def _for(cls, platform: Platform, is_by_token: bool) -> Self:
        """One for each kind of device, shared as in StrictSerializer."""
        made = cls()
        name, unused = (
            ("provider_token", "endpoint") if is_by_token else ("endpoint", "provider_token")
        )
        made._address_field = name
        del made.fields[unused]
        made.fields[name].required = True
        made.narrow(name, platform)
        return made

    @override
    def to_internal_value(self, data: dict[str, Any]) -> Any:
        known = super().to_internal_value(data)
        known["address"] = known.pop(self._address_field)
        known["platform"] = Platform(known["platform"])
        return known

    def narrow(self, name: str, platform: Platform) -> None:
        """For subclasses: further rules for this platform. The address is in the field `name`."""


class SubscribeInput(DeviceInput):
    keys = KeysInput(required=False, help_text="A browser must give them.")
    attributes = Attributes(required=False)
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

    @override
    def narrow(self, name: str, platform: Platform) -> None:
        if platform == Platform.WEB:
            del self.fields["auth"]
            self.fields["keys"].required = True
        else:
            del self.fields["keys"]
            address = self.fields[name]
            address.validators = [*address.validators, TokenRule(platform)]

    @override
    def to_internal_value(self, data: dict[str, Any]) -> Any:
        known = super().to_internal_value(data)
        if "previous_auth" in known:
            known["previous_auth"] = url_spelling(known["previous_auth"])
        return known | known.pop("keys", {})


class TokenRule:
    """The form of a push service's tokens."""

    def __init__(self, platform: Platform) -> None:
        self._pattern, self._detail = _TOKENS[platform]

    def __call__(self, text: str) -> None:
        if not self._pattern.fullmatch(text):
            refuse("not_a_token", self._detail)


class SubscriptionOutput(serializers.Serializer[Any]):
    """The device's subscription."""

    message = serializers.CharField(help_text="For people.")
    subscriptionId = serializers.UUIDField(  # noqa: N815 (the interface's name)
        help_text="The subscription's id, which stays when the device subscribes again."
    )


class UnsubscribeOutput(serializers.Serializer[Any]):
    """That the device is not subscribed."""

    message = serializers.CharField(help_text="For people.")

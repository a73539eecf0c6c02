"""The public requests of devices: how they name a channel and a device, and prove themselves."""

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, ClassVar, Final, Self

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from typing_extensions import override

from channels_app.http import channel_from_header
from channels_app.models import Channel
from channels_app.selectors import ChannelNotFound, refuse_deleted
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.http.fields import Choice, StrictSerializer, Text, refuse
from pushsvc.common.http.ratelimit import Limit, enforce
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from subscriptions_app.addresses import Address, checked_auth, checked_p256dh
from subscriptions_app.people.identity_tokens import MAX_TOKEN

MAX_KEY: Final = 255
MAX_IDENTITY_TOKEN: Final = MAX_TOKEN
# A browser, for examples.
BROWSER = {
    "endpoint": "https://updates.push.services.mozilla.com/wpush/v2/gAAAAABn",
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyP"
        "js7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
    "attributes": {"plan": "pro", "visits": 3},
    "tags": ["team-7"],
}


class DeviceView(ApiView):
    limit_name: ClassVar[str]
    serves_deleted: ClassVar[bool] = False  # also while the channel is being deleted

    @override
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not self.serves_deleted:
            refuse_deleted(self.channel.deletion_asked_at)

    @cached_property
    def channel(self) -> Channel:
        return channel_from_header(self.request)

    @override
    def limit(self, request: Request) -> Limit | None:
        """The limit of the address. A channel with its own limit is counted separately. Unknown
        channels too, so that requests for them do not use up the limit of real channels."""
        address = counted_address(django_request(request))
        try:
            own = self.channel.subscribes_per_minute
        except ChannelNotFound:
            enforce(Limit("unknown-channels", address, settings.UNKNOWN_CHANNELS_PER_MINUTE, 60))
            raise
        if own is None:
            return Limit(self.limit_name, address, settings.SUBSCRIBES_PER_MINUTE, 60)
        return Limit(self.limit_name, f"{self.channel.id}:{address}", own, 60)


def count_refused(request: Request) -> None:
    """Counts a refused token. Raises 429 instead of 403 if the address sent too many of them."""
    address, quota = counted_address(django_request(request)), settings.REFUSED_TOKENS_PER_MINUTE
    enforce(Limit("refused-tokens", address, quota, 60))


class WebKey(Text):
    """A key of the device, in any spelling of base64. It is stored as base64url without padding."""

    def __init__(self, check: Callable[[str], str], code: str, detail: str, **kw: Any) -> None:
        super().__init__(min_length=1, max_length=MAX_KEY, **kw)
        self._check, self._error = check, (code, detail)

    @override
    def run_validation(self, data: Any = serializers.empty) -> str:
        text: str = super().run_validation(data)
        try:
            return self._check(text)
        except ValueError:
            refuse(*self._error)


class Auth(WebKey):
    """RFC 8291 section 3.2. With it the device can prove later that it is the same device."""

    def __init__(self, **kw: Any) -> None:
        super().__init__(checked_auth, "not_16_bytes", "Must be 16 bytes, as base64url.", **kw)


class KeysInput(StrictSerializer):
    """The keys of a browser's PushSubscription."""

    refuse_unknown = False

    p256dh = WebKey(
        checked_p256dh,
        "not_a_p256_point",
        "Must be an uncompressed point on P-256 (65 bytes), as base64url.",
        help_text="The browser's public key, base64url.",
    )
    auth = Auth(help_text="The browser's secret of 16 bytes, base64url.")


class DeviceInput(StrictSerializer):
    """Names a device, by a browser's endpoint or a phone's token.

    For a phone, `provider_token` takes precedence over `endpoint`. For a browser, only `endpoint`
    counts. The other field is not validated. Undeclared fields are ignored, because browsers add
    their own, but a misspelling of a declared field is refused.
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
        min_length=1,
        required=False,
        help_text="Of a phone: its FCM registration token, its Firebase installation id (FID), or"
        " its APNs token.",
    )

    _address_field = "endpoint"

    @override
    @classmethod
    def checked(cls, data: object) -> dict[str, Any]:
        platform, is_by_token = Platform.WEB, False
        if isinstance(data, dict) and data.get("platform") in (Platform.ANDROID, Platform.IOS):
            platform = Platform(data["platform"])
            has_token = data.get("provider_token") is not None
            is_by_token = has_token or data.get("endpoint") is None
        return dict(cls._for(platform, is_by_token).run_validation(data))

    @classmethod
    @cache
    def _for(cls, platform: Platform, is_by_token: bool) -> Self:
        """The serializer for a kind of device, shared as in StrictSerializer."""
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
        platform, text = Platform(known.pop("platform")), known.pop(self._address_field)
        return known | {"address": Address.of(platform, text)}

    def narrow(self, name: str, platform: Platform) -> None:
        """Subclasses add rules for this platform. The address is in the field `name`."""


class ProvableInput(DeviceInput):
    """A device that may prove itself, or a person in its place. Undeclared fields are ignored,
    because browsers add their own, but a misspelling of a declared field is refused."""

    keys = KeysInput(required=False, help_text="Of a browser: prove that it is the device.")
    auth = Auth(required=False, help_text="Of a phone: proves that it is the device.")
    identity_token = Text(
        min_length=1,
        max_length=MAX_IDENTITY_TOKEN,
        required=False,
        help_text="In place of a device: proves the person (docs/identity.md).",
    )

    needs_proof: ClassVar[bool] = False
    of_person: ClassVar[type[StrictSerializer]]

    @override
    @classmethod
    def checked(cls, data: object) -> dict[str, Any]:
        if isinstance(data, dict) and data.get("identity_token") is not None:
            return cls.of_person.checked(data)
        return super().checked(data)

    @override
    def narrow(self, name: str, platform: Platform) -> None:
        proof, other = ("keys", "auth") if platform == Platform.WEB else ("auth", "keys")
        self.fields[proof].required = self.needs_proof
        for each in (other, "identity_token"):
            del self.fields[each]

    @override
    def to_internal_value(self, data: dict[str, Any]) -> Any:
        known = super().to_internal_value(data)
        return known | {"auth": known.pop("keys", {}).get("auth") or known.pop("auth", "")}

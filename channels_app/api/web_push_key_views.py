"""The channel's key pairs for web push, for programs with an API key."""

from typing import Final

from rest_framework import serializers

from channels_app.http import KeyedView
from channels_app.models import VapidKey
from channels_app.resources import Resource
from channels_app.services import TooManyVapidKeys
from channels_app.vapid_keys import MAX_PRIVATE_KEY, vapid_key_store, vapid_keys
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.fields import StrictSerializer, Text


class StoredWebPushKeyInput(StrictSerializer):
    """A key pair that another push service or library used."""

    private_key = Text(
        min_length=1,
        max_length=MAX_PRIVATE_KEY,
        help_text="The private key on P-256: 32 bytes as base64url, an unencrypted PEM, or a JWK as"
        " a string. The public key is derived from it.",
    )


class StoredWebPushKeyOutput(serializers.Serializer[VapidKey]):
    """A key pair of the channel, without its private key."""

    public_key = serializers.CharField(help_text="base64url without padding.")
    current = serializers.SerializerMethodField(
        help_text="Whether browsers subscribe with it now. The others only serve their own"
        " subscriptions."
    )

    def get_current(self, key: VapidKey) -> bool:
        return key.retired_at is None


_SHOWN: Final = {
    "public_key": "BDd3_hVL9fZi9Ybo2UUzA284WG5FZR30_95YeZJsiApwXKpNcF1rRPF3foIiBHXRdJI2Qhumhf6"
    "_LFTeZaNndIo",
    "current": False,
}
_KEY: Final = Resource(
    "web_push_key",
    "web_push_keys",
    tag="channel",
    id_name="web_push_key",
    id_field="public_key",
    input=StoredWebPushKeyInput,
    output=StoredWebPushKeyOutput,
    given={"private_key": "3KzvKasA2SoCxsp0iIG_o9B0Ozvl1XDwI63JRKNIWBM"},
    shown=_SHOWN,
    follow_ups=(),
)


class WebPushKeyListView(KeyedView):
    permission_classes = _KEY.permissions
    get = _KEY.list(
        vapid_keys,
        "List the channel's keys for web push",
        "The current key first, then the others, at most 100. Never with a private key.",
    )
    post = _KEY.create(
        vapid_key_store,
        "Store a key pair that another service used",
        "Browsers that subscribed with this pair at another service or library can then be"
        " imported, and get messages signed with it. New subscriptions use the channel's own key,"
        " to which the SDK moves each browser. Safe to repeat.",
        Invalid(
            [FieldError("private_key", "not_a_private_key", "Must be a private key on P-256.")]
        ),
        TooManyVapidKeys(),
    )

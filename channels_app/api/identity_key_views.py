"""The channel's identity keys, for programs with an API key."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers
from typing_extensions import override

from channels_app.http import KeyedView
from channels_app.identity_keys import (
    MAX_PEM,
    TooManyIdentityKeys,
    identity_key_create,
    identity_key_retire,
)
from channels_app.models import IdentityKey
from channels_app.resources import Resource
from channels_app.selectors import identity_keys
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.fields import Choice, StrictSerializer, Text, Timestamp


class IdentityKeyInput(StrictSerializer):
    """A new identity key."""

    algorithm = Choice(
        ["HS256", "ES256"],
        help_text="`HS256`: the service creates a secret and shows it once. `ES256`: your backend"
        " keeps a private key, and the service stores only the public key.",
    )
    public_key = Text(
        min_length=1,
        max_length=MAX_PEM,
        required=False,
        help_text="With `ES256` only: the PEM of the public key, on P-256.",
    )

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of `identity_key_create`."""
        needed = attrs["algorithm"] == "ES256"
        if needed != ("public_key" in attrs):
            error = (
                serializers.ErrorDetail("This field is required.", code="required")
                if needed
                else serializers.ErrorDetail("Only for ES256.", code="unknown_field")
            )
            raise serializers.ValidationError({"public_key": [error]})
        return {"public_key": attrs.get("public_key")}


class IdentityKeyOutput(serializers.Serializer[Any]):
    """An identity key, without its secret."""

    identity_key_id = serializers.UUIDField(source="id", help_text="For `kid` of a token.")
    algorithm = serializers.ChoiceField(
        ["HS256", "ES256"], help_text="The algorithm of its signatures."
    )
    public_key = serializers.SerializerMethodField(help_text="PEM; null for HS256.")
    created_at = Timestamp(help_text="When the key was created.")

    def get_public_key(self, key: IdentityKey) -> str | None:
        return key.public_key or None


class ShownIdentityKeyOutput(IdentityKeyOutput):
    """A new identity key with its secret."""

    secret = serializers.CharField(
        allow_null=True,
        help_text="The signing secret, whose bytes include `psi_`; null for ES256. It is not shown"
        " again.",
    )

    @override
    def to_representation(self, instance: tuple[IdentityKey, str]) -> dict[str, Any]:
        key, secret = instance
        return {**IdentityKeyOutput(key).data, "secret": secret or None}


_PEM: Final = "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n"
_GIVEN: Final = {"algorithm": "HS256"}
_SHOWN: Final = {
    "identity_key_id": "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52",
    **_GIVEN,
    "public_key": None,
    "created_at": "2026-11-20T15:11:00.123Z",
}
_MADE: Final = {**_SHOWN, "secret": "psi_3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}
_KEY: Final = Resource(
    "identity_key",
    "identity_keys",
    tag="people",
    id_name="identity_key_id",
    id_field="identity_key_id",
    input=IdentityKeyInput,
    output=IdentityKeyOutput,
    given=_GIVEN,
    shown=_SHOWN,
    follow_ups=("delete_identity_key",),
)


class IdentityKeyListView(KeyedView):
    permission_classes = _KEY.permissions
    get = _KEY.list(
        identity_keys,
        "List the channel's identity keys, newest first",
        "The keys in use, at most four.",
    )
    post = _KEY.create(
        identity_key_create,
        "Create an identity key",
        "Your backend signs an `identity_token` with it, which proves to `POST /subscribe` whose"
        " device it is. See docs/identity.md. `Idempotency-Key` is ignored, because a stored"
        " response would contain the secret.",
        Invalid([FieldError("public_key", "required", "This field is required.")]),
        TooManyIdentityKeys(),
        examples=[
            OpenApiExample("With a secret", _GIVEN, request_only=True),
            OpenApiExample(
                "With a key pair", {"algorithm": "ES256", "public_key": _PEM}, request_only=True
            ),
        ],
        output=ShownIdentityKeyOutput,
        shown=_MADE,
    )


class IdentityKeyView(KeyedView):
    permission_classes = _KEY.permissions
    delete = _KEY.delete(
        identity_key_retire,
        "Retire an identity key",
        "Tokens that it signed are refused from now on. Linked devices stay linked. A second call"
        " returns 404.",
    )

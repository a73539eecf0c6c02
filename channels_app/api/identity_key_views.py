"""The channel's identity keys, for programs with an API key."""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from channels_app.http import KeyedView, own_channel, require_scope
from channels_app.identity_keys import (
    MAX_PEM,
    TooManyIdentityKeys,
    identity_key_create,
    identity_key_retire,
)
from channels_app.models import IdentityKey, Scope
from channels_app.selectors import ChannelNotFound, identity_keys
from pushsvc.common.errors import Fault, Invalid, MissingScope
from pushsvc.common.http.fields import Choice, StrictSerializer, Text, Timestamp
from pushsvc.common.http.openapi import follow_ups, problem_responses

_TAG: Final = "people"
_ID: Final = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"
_PEM: Final = "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n"
_SHOWN: Final = {
    "identity_key_id": _ID,
    "algorithm": "HS256",
    "public_key": None,
    "created_at": "2026-11-20T15:11:00.123Z",
}
_MADE: Final = {**_SHOWN, "secret": "psi_3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}
_REFUSED: Final = (401, MissingScope(Scope.MANAGE), ChannelNotFound(), 429, 503)
_NO_KEY: Final = Invalid([Fault("public_key", "required", "This field is required.")])


class IdentityKeyInput(StrictSerializer):
    """An identity key to make."""

    algorithm = Choice(
        ["HS256", "ES256"],
        help_text="`HS256`: the service makes a secret, and shows it once. `ES256`: your backend"
        " keeps a private key, and the service gets the public key only.",
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
            fault = (
                serializers.ErrorDetail("This field is required.", code="required")
                if needed
                else serializers.ErrorDetail("Goes with ES256 only.", code="unknown_field")
            )
            raise serializers.ValidationError({"public_key": [fault]})
        return {"public_key": attrs.get("public_key")}


class IdentityKeyOutput(serializers.Serializer[Any]):
    """An identity key, without its secret."""

    identity_key_id = serializers.UUIDField(source="id", help_text="For `kid` of a token.")
    algorithm = serializers.ChoiceField(["HS256", "ES256"], help_text="By which it signs.")
    public_key = serializers.SerializerMethodField(help_text="PEM; null for HS256.")
    created_at = Timestamp(help_text="When the key was made.")

    def get_public_key(self, key: IdentityKey) -> str | None:
        return key.public_key or None


class ShownIdentityKeyOutput(IdentityKeyOutput):
    """A new identity key."""

    secret = serializers.CharField(
        allow_null=True,
        help_text="The text whose bytes sign, `psi_` included; null for ES256. It is not shown"
        " again.",
    )


class _IdentityKeysView(KeyedView):
    permission_classes = (require_scope(Scope.MANAGE),)


class IdentityKeyListView(_IdentityKeysView):
    @extend_schema(
        operation_id="identity_key_list",
        summary="List the channel's identity keys, newest first",
        description="Those that are in use, four at most.",
        tags=[_TAG],
        extensions=follow_ups(
            200,
            "identity_key_delete",
            identity_key_id="$response.body#/0/identity_key_id",
            channel_id="$request.path.channel_id",
        ),
        responses={
            200: OpenApiResponse(
                IdentityKeyOutput(many=True),
                "All of them.",
                [OpenApiExample("A key", _SHOWN, response_only=True)],
            ),
            **problem_responses(*_REFUSED),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        return Response(IdentityKeyOutput(identity_keys(channel.pk), many=True).data)

    @extend_schema(
        operation_id="identity_key_create",
        summary="Create an identity key",
        description="With it your backend signs an `identity_token`, which proves to `POST"
        " /subscribe` whose device it is. See docs/identity.md. `Idempotency-Key` does not count"
        " here, because the answer, which it would keep, contains the secret.",
        tags=[_TAG],
        request=IdentityKeyInput,
        examples=[
            OpenApiExample("With a secret", {"algorithm": "HS256"}, request_only=True),
            OpenApiExample(
                "With a key pair", {"algorithm": "ES256", "public_key": _PEM}, request_only=True
            ),
        ],
        extensions=follow_ups(
            201,
            "identity_key_delete",
            identity_key_id="$response.body#/identity_key_id",
            channel_id="$request.path.channel_id",
        ),
        responses={
            201: OpenApiResponse(
                ShownIdentityKeyOutput,
                "Created.",
                [OpenApiExample("A key", _MADE, response_only=True)],
            ),
            **problem_responses(_NO_KEY, *_REFUSED, TooManyIdentityKeys(), 413, 415),
        },
    )
    def post(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        given = IdentityKeyInput.checked(request.data)
        key, secret = identity_key_create(channel=channel, **given)
        shown = {**IdentityKeyOutput(key).data, "secret": secret or None}
        return Response(shown, status=201)


class IdentityKeyView(_IdentityKeysView):
    @extend_schema(
        operation_id="identity_key_delete",
        summary="Retire an identity key",
        description="Tokens that it signed prove nothing any more. Devices that are linked stay"
        " linked. A second call answers 404.",
        tags=[_TAG],
        responses={
            204: OpenApiResponse(description="Retired."),
            **problem_responses(404, *_REFUSED),
        },
    )
    def delete(self, request: Request, channel_id: UUID, identity_key_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        identity_key_retire(channel=channel, identity_key_id=identity_key_id)
        return Response(status=204)

"""Authenticates requests and finds their channel, for the views of all apps."""

from typing import Any
from uuid import UUID

from django.conf import settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from typing_extensions import override

from channels_app import keys
from channels_app.models import ApiKey, Channel, Scope
from channels_app.selectors import (
    ChannelNotFound,
    FoundKey,
    channel_get,
    recent_api_key,
    recent_channel,
    refuse_deleted,
)
from channels_app.services import api_key_note_use
from pushsvc.common.errors import BadRequest, MissingKey, MissingScope
from pushsvc.common.http import ratelimit
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.ids import parse_uuid

_OTHER_SCHEME = (
    "The scheme of the Authorization header must be `Key`, for example not `Bearer`. Send "
    "`Authorization: Key <API_KEY>`."
)


class InvalidKey(MissingKey):
    code = "invalid_key"
    title = "The API key is not valid"
    detail = "This API key does not exist or is mistyped."


class ExpiredKey(MissingKey):
    code = "expired_key"
    title = "The API key has expired"
    detail = "This API key has expired. Use another one."


class RevokedKey(MissingKey):
    code = "revoked_key"
    title = "The API key was revoked"
    detail = "This API key was revoked. Use another one."


class ChannelIdMissing(BadRequest):
    code = "channel_id_missing"
    title = "The channel is not named"
    detail = "Send the header `X-Channel-ID: <CHANNEL_ID>`."


class ChannelIdMalformed(BadRequest):
    code = "channel_id_malformed"
    title = "The channel id is malformed"
    detail = "X-Channel-ID must be one hyphenated UUID."


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Key <API_KEY>`. `request.auth` is the key with its channel.

    An address that sent too many refused keys or keys without the scope gets 429 instead of 401 and
    403. Its valid keys still work.
    """

    @override
    def authenticate(self, request: Request) -> tuple[None, ApiKey]:
        text = _key_text(request.headers.get("Authorization", ""))
        try:
            found = _accepted(text)
        except MissingKey:
            _count_refused(request)
            raise
        api_key_note_use(found)
        return None, found.api_key


def _count_refused(request: Request) -> None:
    address, quota = counted_address(django_request(request)), settings.REFUSED_KEYS_PER_MINUTE
    ratelimit.enforce(ratelimit.Limit("refused-keys", address, quota, 60))


def _key_text(header: str) -> str:
    scheme, _, text = header.strip().partition(" ")
    if text and scheme.lower() != "key":
        raise MissingKey(_OTHER_SCHEME)
    if not text:
        raise MissingKey
    return text.strip()


def _accepted(text: str) -> FoundKey:
    presented = keys.parse(text)
    found = recent_api_key(presented.public_id) if presented else None
    if presented is None or found is None or not presented.matches(found.api_key.secret_sha256):
        raise InvalidKey
    if found.api_key.revoked_at is not None:
        raise RevokedKey
    if found.is_expired:
        raise ExpiredKey
    return found


def accepted_key(header: str) -> str | None:
    """The public id of the key that an Authorization header presents. None if it is refused."""
    try:
        return _accepted(_key_text(header)).api_key.public_id
    except MissingKey:
        return None


def require_scope(scope: str) -> type[BasePermission]:
    """For `permission_classes` of a KeyedView: refuses a key without this scope with 403."""

    class HasScope(BasePermission):
        @override
        def has_permission(self, request: Request, view: Any) -> bool:
            if scope not in key_of(request).scopes:
                _count_refused(request)
                raise MissingScope(scope)
            return True

    return HasScope


def key_of(request: Request) -> ApiKey:
    """The key that ApiKeyAuthentication accepted."""
    key = request.auth
    if not isinstance(key, ApiKey):
        raise MissingKey
    return key


def channel_limit(request: Request, name: str, quota: int, seconds: int = 60) -> ratelimit.Limit:
    """A limit for all keys of the request's channel together."""
    return ratelimit.Limit(name, str(key_of(request).channel_id), quota, seconds)


class KeyedView(ApiView):
    # No docstring, as ApiView. The limit is that of requests that change a channel.
    authentication_classes = (ApiKeyAuthentication,)

    @override
    def limit(self, request: Request) -> ratelimit.Limit | None:
        return channel_limit(request, "manage", settings.MANAGE_PER_MINUTE)

    @override
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method not in SAFE_METHODS:
            refuse_deleted(key_of(request).channel.deletion_asked_at)


class ReadingView(KeyedView):
    permission_classes = (require_scope(Scope.READ),)

    @override
    def limit(self, request: Request) -> ratelimit.Limit | None:
        return channel_limit(request, "reads", settings.READS_PER_MINUTE)


def own_channel(request: Request, channel_id: UUID) -> Channel:
    """Returns the key's channel. Raises ChannelNotFound for any other id, existing or not."""
    channel = key_of(request).channel
    if channel.pk != channel_id:
        raise ChannelNotFound("This API key is not a key of a channel with this id.")
    return channel


def own_channel_now(request: Request, channel_id: UUID) -> Channel:
    """As `own_channel`, but read from the database, because another process may have changed the
    channel in the last second."""
    return channel_get(own_channel(request, channel_id).pk)


def channel_from_header(request: Request) -> Channel:
    """The channel that X-Channel-ID names, for public views. It may be one that is being
    deleted."""
    text = request.headers.get("X-Channel-ID", "").strip()
    if not text:
        raise ChannelIdMissing
    try:
        channel_id = parse_uuid(text)
    except ValueError as error:
        raise ChannelIdMalformed from error
    return recent_channel(channel_id)

"""The audit log: who changed what, when and from where, with the values before and after.

Services write an entry in the same transaction as the change. Entries are stored in the table of
django-auditlog. Its signals are not used, because updates by query send none. A trigger of
PostgreSQL refuses to change or delete entries. Entries contain only fields of `SHOWN`, so no
secrets.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from auditlog.models import LogEntry
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import IntegerChoices, Model, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext
from redis.exceptions import RedisError

from channels_app.models import Account, ApiKey, Channel, Membership
from pushsvc.common.http.client_address import client_ip
from pushsvc.common.store.redis_client import redis_client
from pushsvc.common.texts import later
from pushsvc.common.timestamps import format_timestamp

SHOWN: dict[str, tuple[str, ...]] = {  # notifications_app adds its own
    "axes.accessattempt": ("username", "ip_address", "failures_since_start"),
    "auth.user": ("username", "email", "is_active", "is_staff", "is_superuser"),
    "channels_app.account": ("name", "requires_two_step"),
    "channels_app.membership": ("user", "role", "gets_alerts"),
    "channels_app.channel": (
        "name",
        "account",
        "web_enabled",
        "android_enabled",
        "ios_enabled",
        "vapid_subject",
        "site_url",
        "web_click",
        "prompt",
        "sends_per_second",
        "subscribes_per_minute",
        "max_subscriptions",
        "category_required",
        "timezone",
        "rate_per_minute",
        "quiet_hours",
        "inbox_days",
        "caps",
        "identity",
        "deletion_asked_at",
    ),
    "channels_app.apikey": ("public_id", "name", "scopes", "expires_at", "revoked_at"),
    "channels_app.identitykey": ("algorithm", "public_key", "retired_at"),
    "channels_app.vapidkey": ("public_key", "retired_at"),
    # Not the whole address, which may contain secrets.
    "channels_app.webhook": (
        "origin",
        "events",
        "description",
        "format",
        "is_enabled",
        "disabled_code",
    ),
    "channels_app.providercredential": ("platform", "version", "facts", "paused_code"),
    "subscriptions_app.category": (
        "key",
        "name",
        "description",
        "chosen_by_default",
        "position",
        "archived_at",
    ),
    # Not the external id, for the same reason; notes contain a keyed hash of it (`id_hash`).
    "subscriptions_app.person": ("opted_out_at",),
    "subscriptions_app.segment": ("name", "rule"),
    # Neither address nor attributes, because entries stay when a person's data is deleted.
    "subscriptions_app.subscription": ("platform", "expired_at", "expired_code"),
    "subscriptions_app.testdevice": ("name", "subscription_id", "writer"),
    "notifications_app.draft": (),
}

MOST_SHOWN: Final = 4_000  # characters of a value, as JSON
Fields = Mapping[str, Any]
_NOBODY: Final = {
    "command": later("a command"),
    "nobody": later("a visitor who was not signed in"),
}
_LATEST: Final = 50  # entries of a row
_KEY_NAME: Final = "psk_"
_ID_SALT: Final = "channels_app.audit.external_id"

_request: ContextVar[HttpRequest | None] = ContextVar("audited_request", default=None)


class Action(IntegerChoices):
    """The kinds of entries, with the numbers of django-auditlog."""

    CREATE = 0, later("created")
    UPDATE = 1, later("changed")
    DELETE = 2, later("deleted")
    ACCESS = 3, later("access")  # without a change, such as a sign-in or an export


def fields_of(instance: Model) -> dict[str, Any]:
    """The fields that an entry may show, for `before` or `after` of `record`."""
    return {name: getattr(instance, name) for name in SHOWN[instance._meta.label_lower]}


@transaction.atomic
def record(
    instance: Model,
    action: Action,
    before: Fields | None = None,
    after: Fields | None = None,
    *,
    note: str = "",
    account_id: UUID | None = None,
    actor: User | None = None,
) -> None:
    """Writes an entry. Actor and address come from the current request.

    The entry contains the fields that differ between `before` and `after` (see `fields_of`; both
    may have fewer fields). A field that is not in SHOWN raises ValueError. An update without
    differences and without a note writes nothing. `note`: one sentence for people, without secrets.
    `account_id`: the account whose staff may read the entry, if the row has no account. `actor`:
    the user, if the request has none yet (at sign-in). A streamed response must record before its
    first part.
    """
    changes = _changes(instance._meta.label_lower, before or {}, after or {})
    if action == Action.UPDATE and not changes and not note:
        return
    request = _request.get()
    staff = actor or _staff(request)
    LogEntry.objects.create(
        content_type=ContentType.objects.get_for_model(instance),
        object_pk=str(instance.pk),
        object_id=instance.pk if isinstance(instance.pk, int) else None,
        object_repr=str(instance)[:200],
        action=int(action),
        changes=changes,
        timestamp=Now(),
        additional_data=_about(instance, account_id) | {"note": note} | _via(request, staff),
        actor_id=staff.pk if staff else None,
        actor_email=staff.email if staff else None,
        remote_addr=client_ip(request) if request else None,
    )


def record_once_an_hour(channel: Channel, note: str) -> None:
    """Writes an entry of access to the channel, unless the same actor has one with the note of the
    last hour. For reads that programs repeat page by page. Without Redis, each is written."""
    digest = salted_hmac(_ID_SALT, f"{channel.pk} {actor_name()} {note}").hexdigest()
    key = f"audited:{digest}"
    try:
        is_first = bool(redis_client().set(key, 1, nx=True, ex=3600))
    except RedisError:
        is_first = True
    if not is_first:
        return
    try:
        record(channel, Action.ACCESS, note=note)
    except BaseException:
        with suppress(RedisError):
            redis_client().delete(key)
        raise


def id_hash(external_id: str, secret: str | None = None) -> str:
    """A hash of the external id of a person, for notes: entries are kept when the person is erased.
    It is keyed with `secret` (by default SECRET_KEY), because ids can be guessed, and a plain hash
    would show which guess is right."""
    return salted_hmac(_ID_SALT, external_id, secret, algorithm="sha256").hexdigest()


def id_hashes(external_id: str) -> list[str]:
    """All hashes that entries may contain for the external id: one for each SECRET_KEY in use."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return [id_hash(external_id, secret) for secret in secrets]


def is_by_staff() -> bool:
    """Whether the actor is a signed-in member of staff, and not an API key or a command.

    For actions that are recorded only for staff, because programs do millions of them.
    """
    return _staff(_request.get()) is not None


def actor_name() -> str:
    """The API key (`psk_` and its public id) or the user name of the current request; "" without
    one."""
    via = _via(_request.get(), _staff(_request.get()))
    return via.get("key") or via.get("who") or ""


@dataclass(frozen=True, slots=True)
class Change:
    who: str
    at: datetime


def who_did(entry: LogEntry) -> str:
    """The actor of an entry, for people. "" if it is unknown."""
    about = entry.additional_data or {}
    if "who" in about:
        return str(about["who"])
    if "key" in about:
        return gettext("API key %(key)s_…") % {"key": about["key"]}
    return str(_NOBODY.get(about.get("via", ""), ""))


def last_changes(row: Model, names: Collection[str]) -> dict[str, Change]:
    """Who changed each of these fields of the row last, as far as its latest entries show it."""
    found: dict[str, Change] = {}
    for entry in _updates(row)[:_LATEST]:
        for name in set(names) & (entry.changes or {}).keys() - found.keys():
            found[name] = Change(who_did(entry), entry.timestamp)
    return found


def last_actor(row: Model) -> str:
    """Who changed the row last, for people. "" if it is unknown."""
    entry = _updates(row).first()
    return who_did(entry) if entry else ""


def _updates(row: Model) -> QuerySet[LogEntry]:
    """The entries of changes of the row, newest first."""
    found: QuerySet[LogEntry] = LogEntry.objects.get_for_object(row)
    return found.filter(action=Action.UPDATE).order_by("-id")


def is_key_name(actor: str) -> bool:
    """Whether an `actor_name` is an API key's."""
    return actor.startswith(_KEY_NAME)


def key_names(actors: Iterable[str]) -> dict[str, str]:
    """The names of API keys, by their `actor_name`. Keys without a name are missing."""
    ids = [each.removeprefix(_KEY_NAME) for each in actors if is_key_name(each)]
    named = ApiKey.objects.filter(public_id__in=ids).exclude(name="") if ids else ()
    return {f"{_KEY_NAME}{each.public_id}": f"API key “{each.name}”" for each in named}


@contextmanager
def request_context(request: HttpRequest) -> Iterator[None]:
    """A context in which written entries belong to this request."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


class AuditMiddleware:
    """Makes the current request available to `record`, without passing it through every call."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with request_context(request):
            return self._get_response(request)


def _changes(label: str, before: Fields, after: Fields) -> dict[str, list[Any]]:
    names = [*before, *(name for name in after if name not in before)]
    if unknown := set(names) - set(SHOWN[label]):
        raise ValueError(f"the audit log may not show {sorted(unknown)} of {label}")
    pairs = {name: [_plain(before.get(name)), _plain(after.get(name))] for name in names}
    return {n: [_cut(each) for each in pair] for n, pair in pairs.items() if pair[0] != pair[1]}


def _cut(value: Any) -> Any:
    """The value, or the beginning of its JSON if that is long, because entries are kept for good
    and a key may change a rule of 64 KiB ten times a second."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= MOST_SHOWN:
        return value
    return f"{text[:MOST_SHOWN]}… ({len(text):,} characters)"


def _plain(value: Any) -> Any:
    """Converts a value for JSON."""
    match value:
        case None | bool() | int() | float():
            return value
        case datetime():
            return format_timestamp(value)
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(part) for part in value]
        case _:
            return str(value)


def _about(instance: Model, account_id: UUID | None) -> dict[str, str]:
    """The account and the channel of the row. The list finds entries by account (index
    `auditlog_by_account`)."""
    match instance:
        case Account():
            account_id = instance.pk
        case Channel() | Membership():
            account_id = instance.account_id
    channel = instance if isinstance(instance, Channel) else getattr(instance, "channel", None)
    about = {}
    if isinstance(channel, Channel):
        about["channel"] = str(channel.pk)
        account_id = channel.account_id
    if account_id is not None:
        about["account"] = str(account_id)
    return about


def _via(request: HttpRequest | None, staff: User | None) -> dict[str, str]:
    """The kind of the actor; for staff also the current user name."""
    if request is None:
        return {"via": "command"}
    key = getattr(request, "auth", None)
    if isinstance(key, ApiKey):
        return {"via": "api", "key": f"{_KEY_NAME}{key.public_id}"}
    return {"via": "console", "who": staff.get_username()} if staff else {"via": "nobody"}


def _staff(request: HttpRequest | None) -> User | None:
    user = getattr(request, "user", None)
    return user if isinstance(user, User) and user.is_staff else None

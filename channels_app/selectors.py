"""Reads channels, their keys, credentials and totals."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Case, F, FloatField, Max, QuerySet, Subquery, Sum, When
from django.db.models.functions import Cast, Coalesce, Now

from channels_app.models import (
    KEPT_TOTALS,
    PROMPT_EVENTS,
    ApiKey,
    Channel,
    ChannelCounter,
    DeletedTotals,
    IdentityKey,
    PromptHour,
    ProviderCredential,
    VapidKey,
)
from pushsvc.common.errors import Forbidden, NotFound
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.store.crypto import decrypt
from pushsvc.common.store.recent import Recent
from pushsvc.common.texts import later

_USE_NOTED_EVERY = timedelta(minutes=1)
_NEARLY_FULL = 0.9
# The page on which staff store credentials checks them at once.
_PAGE_CHECKS_WITHIN = timedelta(seconds=5)
_NEW_FOR = timedelta(hours=1)


class ChannelNotFound(NotFound):
    code = "channel_not_found"
    title = "No such channel"
    detail = "No channel has this id."


class ChannelDeleted(Forbidden):
    """An owner asked to delete the channel. Nothing is sent or accepted meanwhile."""

    code = "channel_deleted"
    title = "The channel is being deleted"
    detail = later(
        "The channel is being deleted. For a day, an owner of its account can undo this in the"
        " console."
    )


@dataclass(frozen=True)
class FoundKey:
    """An API key with its channel, and the database's time when it was read."""

    api_key: ApiKey
    read_at: datetime

    @property
    def is_expired(self) -> bool:
        return self.api_key.expires_at is not None and self.api_key.expires_at <= self.read_at

    @property
    def is_use_due(self) -> bool:
        """Whether `last_used_at` is old enough to be written again."""
        used_at = self.api_key.last_used_at
        return used_at is None or used_at < self.read_at - _USE_NOTED_EVERY


class VapidPrivateKey(NamedTuple):
    private_key: str  # the 32 bytes, base64url without padding
    subject: str


@dataclass(frozen=True)
class DecryptedCredentials:
    """`secret`: the JSON of `channels_app.provider_credentials.secret_json`, decrypted."""

    version: int
    secret: str
    is_paused: bool


@dataclass(frozen=True)
class ChannelTotals:
    web_subscribers: int = 0
    android_subscribers: int = 0
    ios_subscribers: int = 0
    stored_subscriptions: int = 0
    notifications_sent: int = 0
    recipients: int = 0
    delivered: int = 0
    bounced: int = 0
    clicked: int = 0
    people: int = 0
    linked_devices: int = 0

    @property
    def subscribers(self) -> int:
        return sum(map(self.subscribers_on, Platform))

    def subscribers_on(self, platform: Platform) -> int:
        number: int = getattr(self, f"{platform}_subscribers")
        return number


class StoredSubscriptions(NamedTuple):
    """`most_uncounted`: how many more may be in transactions that have not ended."""

    counted: int
    most_uncounted: int


@dataclass(frozen=True, slots=True)
class NearlyFull:
    """A channel that has `stored` of at most `most` subscriptions."""

    channel_id: UUID
    channel_name: str
    stored: int
    most: int

    @property
    def is_full(self) -> bool:
        return self.stored >= self.most


def channel_get(channel_id: UUID) -> Channel:
    """Returns the channel. Raises ChannelNotFound."""
    try:
        return Channel.objects.get(pk=channel_id)
    except Channel.DoesNotExist as error:
        raise ChannelNotFound from error


def channel_locked(channel_id: UUID) -> Channel:
    """Locks the channel for an update and returns it. Raises ChannelNotFound."""
    found = Channel.objects.select_for_update(no_key=True, of=("self",)).select_related("account")
    try:
        return found.get(pk=channel_id)
    except Channel.DoesNotExist as error:
        raise ChannelNotFound from error


def channel_hold(channel_id: UUID) -> None:
    """Raises ChannelDeleted if the channel is being deleted. Otherwise nobody can ask to delete it
    until the caller's transaction ends. Raises ChannelNotFound."""
    found = sql.rows(_HOLD, {"channel": channel_id})
    if not found:
        raise ChannelNotFound
    refuse_deleted(*found[0])


def refuse_deleted(deletion_asked_at: datetime | None) -> None:
    if deletion_asked_at is not None:
        raise ChannelDeleted


def api_key_find(public_id: str) -> FoundKey | None:
    found = (
        ApiKey.objects.select_related("channel")
        .annotate(read_at=Now())
        .filter(public_id=public_id)
        .first()
    )
    return FoundKey(found, found.read_at) if found else None


def identity_keys(channel_id: UUID) -> list[IdentityKey]:
    """The channel's identity keys in use, newest first."""
    live = IdentityKey.objects.filter(channel_id=channel_id, retired_at__isnull=True)
    return list(live.order_by("-created_at", "-id"))


# For requests, of which there are thousands per second. The rows may be a second old.
recent_channel: Final = Recent(channel_get)
recent_api_key: Final = Recent(api_key_find)
recent_identity_keys: Final = Recent(identity_keys)


def recent_forget() -> None:
    """Call it when this process has committed a change of a key or a channel."""
    recent_channel.forget()
    recent_api_key.forget()
    recent_identity_keys.forget()


def is_enabled(channel: Channel, platform: Platform) -> bool:
    """Whether the platform is enabled. Reads the database before it returns False, because the row
    may be a second old, and another process may just have enabled the platform."""
    return channel.platforms[platform] or channel_get(channel.id).platforms[platform]


def current_vapid_key(channel: Channel) -> VapidKey:
    """The key pair for new subscriptions. Every channel has one."""
    return VapidKey.objects.get(channel=channel, retired_at__isnull=True)


def retired_vapid_keys(channel: Channel) -> QuerySet[VapidKey]:
    """The retired VAPID keys without their secrets; the key that was retired last comes first."""
    retired = VapidKey.objects.filter(channel=channel, retired_at__isnull=False)
    return retired.defer("private_key_encrypted").order_by("-retired_at")


def vapid_private_keys(ids: Iterable[UUID]) -> dict[UUID, VapidPrivateKey]:
    """The private keys by key id, including retired keys. Raises SecretUnreadable if
    CREDENTIAL_KEYS lacks a secret's key."""
    rows = sql.rows(_PRIVATE_KEYS, {"ids": list(ids)}, is_prepared=True)
    return {id_: VapidPrivateKey(decrypt(secret), subject) for id_, secret, subject in rows}


def credential_for(channel_id: UUID, platform: Platform) -> DecryptedCredentials | None:
    """The channel's current credentials, or None. Raises SecretUnreadable if CREDENTIAL_KEYS lacks
    their key."""
    row = ProviderCredential.objects.filter(channel_id=channel_id, platform=platform).first()
    if row is None:
        return None
    return DecryptedCredentials(
        row.version, decrypt(row.secret_encrypted), row.paused_at is not None
    )


def usable_credentials() -> QuerySet[ProviderCredential]:
    """Credentials that were not refused since they were stored."""
    return ProviderCredential.objects.filter(paused_at__isnull=True)


def channel_credentials(channel_id: UUID) -> dict[str, ProviderCredential]:
    """The channel's credentials by platform, without their secrets."""
    rows = ProviderCredential.objects.filter(channel_id=channel_id).defer("secret_encrypted")
    return {row.platform: row for row in rows}


def credentials_unchecked() -> QuerySet[ProviderCredential]:
    """Credentials of the last hour that were not checked yet, oldest first: stored through the API,
    or without JavaScript."""
    new = ProviderCredential.objects.filter(
        checked_at__isnull=True,
        updated_at__gt=Now() - _NEW_FOR,
        updated_at__lt=Now() - _PAGE_CHECKS_WITHIN,
    )
    return new.defer("secret_encrypted").order_by("updated_at")


def credentials_to_retry() -> QuerySet[ProviderCredential]:
    """Credentials of paused platforms whose next retry is due, the longest due first."""
    due = ProviderCredential.objects.filter(paused_at__isnull=False, retry_at__lte=Now())
    return due.defer("secret_encrypted").order_by("retry_at")


def channel_api_keys(channel_id: UUID) -> QuerySet[ApiKey]:
    """The channel's keys, newest first. `is_expired` is by the database's clock."""
    is_expired = Case(When(expires_at__lte=Now(), then=True), default=False)
    keys = ApiKey.objects.filter(channel_id=channel_id).defer("secret_sha256")
    return keys.annotate(is_expired=is_expired).order_by("-created_at", "-id")


@dataclass(frozen=True)
class PromptFigures:
    """What visitors did with a kind of prompt."""

    kind: str
    shown: int
    accepted: int
    refused: int
    blocked: int

    @property
    def accepted_share(self) -> float | None:
        return self.accepted / self.shown if self.shown else None


def prompt_figures(channel: Channel, *, days: int) -> list[PromptFigures]:
    """Of the kinds that sites used in these days, the one that was shown most first."""
    hours = PromptHour.objects.filter(channel=channel, hour__gte=Now() - timedelta(days=days))
    sums = (Sum(name) for name in PROMPT_EVENTS)
    found = [PromptFigures(*row) for row in hours.values_list("kind").annotate(*sums)]
    return sorted(found, key=lambda each: (-each.shown, each.kind))


def channel_totals(channel_id: UUID) -> ChannelTotals:
    """The channel's totals. They are exact, because each transaction also writes its counts."""
    return _added_up(ChannelCounter.objects.filter(channel_id=channel_id))


def totals_of(channels: QuerySet[Channel]) -> ChannelTotals:
    """The totals of these channels together."""
    return _added_up(ChannelCounter.objects.filter(channel__in=channels))


def installation_totals() -> ChannelTotals:
    """The totals of all channels. KEPT_TOTALS include deleted channels. One statement, so that they
    do not fall while a channel is deleted."""
    deleted = {
        name: Coalesce(Subquery(DeletedTotals.objects.values(name)[:1]), 0) for name in KEPT_TOTALS
    }
    return _added_up(ChannelCounter.objects.all(), deleted)


def _added_up(
    shares: QuerySet[ChannelCounter], more: Mapping[str, Coalesce] = MappingProxyType({})
) -> ChannelTotals:
    names = list(ChannelTotals.__dataclass_fields__)
    sums = {name: Coalesce(Sum(name), 0) for name in names}
    found = shares.aggregate(**sums | {name: sums[name] + more[name] for name in more})
    return ChannelTotals(**{name: int(found[name]) for name in names})


def stored_subscriptions(channel_id: UUID) -> StoredSubscriptions:
    ((counted, most_uncounted),) = sql.rows(_STORED, {"channel": channel_id})
    return StoredSubscriptions(counted, most_uncounted)


def nearly_full_channels(channels: QuerySet[Channel], *, limit: int) -> list[NearlyFull]:
    """The channels with at least nine tenths of their maximum of subscriptions, the fullest
    first."""
    own = Max("channel__max_subscriptions")
    sums = ChannelCounter.objects.filter(channel__in=channels).values("channel_id")
    filled = sums.annotate(
        name=Max("channel__name"),
        stored=Sum("stored_subscriptions"),
        most=Coalesce(own, settings.SUBSCRIPTIONS_PER_CHANNEL),
        share=Cast(F("stored"), FloatField()) / F("most"),
    ).filter(share__gte=_NEARLY_FULL)
    fullest = filled.order_by("-share").values_list("channel_id", "name", "stored", "most")
    return [NearlyFull(*row) for row in fullest[:limit]]


# SQL for a statement of subscriptions_app with the parameters `channel` and `most`: the id of the
# channel's current key; and one row if the channel surely has the capacity for one more
# subscription, otherwise no row.
CURRENT_VAPID_KEY_PART = """(SELECT id FROM channels_app_vapidkey
    WHERE channel_id = %(channel)s AND retired_at IS NULL)"""
CAPACITY_PART = """SELECT FROM channels_app_channelcounter WHERE channel_id = %(channel)s
  HAVING coalesce(sum(stored_subscriptions), 0) + current_setting('max_connections')::int
    < %(most)s"""

# In SQL, because it also reads a setting of PostgreSQL. A connection has at most one row that is
# not counted yet.
_PRIVATE_KEYS = """
SELECT key.id, key.private_key_encrypted, channel.vapid_subject
FROM channels_app_vapidkey key JOIN channels_app_channel channel ON channel.id = key.channel_id
WHERE key.id = ANY(%(ids)s::uuid[])
"""

_STORED = """
SELECT coalesce(sum(stored_subscriptions), 0)::bigint, current_setting('max_connections')::int
FROM channels_app_channelcounter WHERE channel_id = %(channel)s
"""

# In SQL, because the ORM has no FOR KEY SHARE, which is the lock of rows that refer to the channel.
_HOLD = """
SELECT deletion_asked_at FROM channels_app_channel WHERE id = %(channel)s FOR KEY SHARE
"""
# For a statement that inserts a row with this `channel_id`: one row, unless the channel is being
# deleted.
KEPT_CHANNEL_PART = """SELECT FROM channels_app_channel
  WHERE id = %(channel_id)s AND deletion_asked_at IS NULL FOR KEY SHARE"""

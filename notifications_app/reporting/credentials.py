"""Finds credentials that push services refuse, that are old, and that are missing."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value

from channels_app.models import Channel, ProviderCredential
from notifications_app.reporting.bounce_reasons import words_for
from pushsvc.common.findings import Finding, Kind
from pushsvc.common.platforms import PLATFORM_NAMES, Platform

# Google recommends rotating keys of service accounts at least every 90 days, to limit the use of a
# leaked key (https://cloud.google.com/iam/docs/key-rotation). Apple recommends nothing similar.
OLD_KEY: Final = timedelta(days=90)

_MOST: Final = 10  # of a kind
_PROVIDERS: Final = {Platform.ANDROID: "Google", Platform.IOS: "Apple"}
_FIELDS: Final = (
    "platform",
    "updated_at",
    "paused_at",
    "paused_code",
    "paused_detail",
    "retry_at",
    "retried_at",
    "is_accepted",
)


class _Row(NamedTuple):
    """`credential`: None if the platform has none."""

    channel_id: UUID
    name: str
    platform: Platform
    credential: ProviderCredential | None


def credentials(channels: QuerySet[Channel], now: datetime) -> Iterator[Finding]:
    """Paused credentials first, then old ones, then enabled platforms without any. Read in one
    statement."""
    missing = (_missing(channels, platform) for platform in _PROVIDERS)
    return _findings(_notable(channels, now, _MOST).union(*missing, all=True), now)


def refused_credentials(
    channels: QuerySet[Channel], now: datetime, most: int = _MOST
) -> Iterator[Finding]:
    """Paused credentials first, then old ones."""
    return _findings(_notable(channels, now, most), now)


def _notable(channels: QuerySet[Channel], now: datetime, most: int) -> QuerySet[Any, Any]:
    is_old = Q(platform=Platform.ANDROID, updated_at__lt=now - OLD_KEY)
    notable = ProviderCredential.objects.filter(
        Q(paused_at__isnull=False) | is_old, channel__in=channels
    )
    ordered = notable.order_by(F("paused_at").asc(nulls_last=True), "updated_at")
    return ordered.values_list("channel_id", "channel__name", *_FIELDS)[: 2 * most]


def _missing(channels: QuerySet[Channel], platform: Platform) -> QuerySet[Any, Any]:
    """With the columns of `_notable`."""
    stored = ProviderCredential.objects.filter(channel=OuterRef("pk"), platform=platform)
    lacking = channels.filter(~Exists(stored), **{f"{platform}_enabled": True})
    fields = (_field(name) for name in _FIELDS[1:])
    empty = (Value(None, field) for field in fields)
    found = lacking.order_by("name").values_list("pk", "name", Value(platform.value), *empty)
    return found[:_MOST]


def _field(name: str) -> Any:
    return ProviderCredential._meta.get_field(name)


def _findings(rows: Iterable[Sequence[Any]], now: datetime) -> Iterator[Finding]:
    for row in sorted(map(_row, rows), key=_place):
        about: dict[str, Any] = {
            "channel": (row.channel_id, row.name),
            "platform": row.platform,
        }
        words: dict[str, Any] = {
            "name": PLATFORM_NAMES[row.platform],
            "provider": _PROVIDERS[row.platform],
        }
        if row.credential is None:
            yield Kind.CREDENTIALS_MISSING.found(**words, **about)
        elif row.credential.paused_at is None:
            yield _old(row.credential, now, about)
        else:
            yield _paused(row.credential, words | about)


def _row(values: Sequence[Any]) -> _Row:
    channel_id, name, *fields = values
    found = dict(zip(_FIELDS, fields, strict=True))
    credential = ProviderCredential(**found) if found["updated_at"] else None
    return _Row(channel_id, name, Platform(found["platform"]), credential)


def _place(row: _Row) -> tuple[Any, ...]:
    if row.credential is None:
        return (2, row.name, row.platform)
    paused_at = row.credential.paused_at
    return (1, row.credential.updated_at) if paused_at is None else (0, paused_at)


def _paused(credential: ProviderCredential, about: dict[str, Any]) -> Finding:
    return Kind.PLATFORM_PAUSED.found(
        meaning=words_for(Platform(credential.platform), credential.paused_code).meaning,
        quote=f"{credential.paused_code}: {credential.paused_detail}".rstrip(": "),
        since=credential.paused_at,
        tries=credential.tries,
        subject=credential.platform,
        **about,
    )


def _old(credential: ProviderCredential, now: datetime, about: dict[str, Any]) -> Finding:
    return Kind.CREDENTIALS_OLD.found(
        days=(now - credential.updated_at).days,
        most=OLD_KEY.days,
        since=credential.updated_at,
        **about,
    )

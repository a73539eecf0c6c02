"""Problems that staff should look at. Each concern says what is wrong and what to do.

Every read is bounded and uses an index.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Exists, F, Min, OuterRef, Q, QuerySet, Sum
from django.utils.text import Truncator

from channels_app.models import ApiKey, Channel, ProviderCredential
from channels_app.selectors import nearly_full_channels
from notifications_app.delivery.registry import services_with_breaker
from notifications_app.models import (
    BREAKING_BATCH,
    RECIPIENTS_LEFT,
    WANTED_SINCE,
    Batch,
    Notification,
)
from notifications_app.pipeline import breakers
from notifications_app.reporting.bounce_reasons import words_for
from notifications_app.reporting.concern import Concern, Kind
from notifications_app.reporting.jumps import jumps
from notifications_app.reporting.limited import is_not_limited, limited
from notifications_app.reporting.unreached import unreached
from notifications_app.states import BatchStatus, NotificationStatus
from pushsvc.common import worker
from pushsvc.common.console.figures import duration
from pushsvc.common.platforms import PLATFORM_NAMES, Platform

MOST_OF_A_KIND: Final = 10

# Google recommends rotating keys of service accounts at least every 90 days, to limit the use of a
# leaked key (https://cloud.google.com/iam/docs/key-rotation). Apple recommends nothing similar.
OLD_KEY: Final = timedelta(days=90)
KEY_ENDS_SOON: Final = timedelta(days=14)
KEY_IN_USE: Final = timedelta(days=30)

LATE_START: Final = timedelta(seconds=15)
LATE_BATCH: Final = timedelta(seconds=60)
VERY_LATE_BATCH: Final = timedelta(minutes=10)

_TEXT_SHOWN: Final = 60  # characters

_IF_IT_RUNS: Final = (
    "If it runs, its REDIS_URL names another Redis, or another database of it, than that of this "
    "process."
)

_PROVIDERS: Final = {Platform.ANDROID: "Google", Platform.IOS: "Apple"}


def concerns(channels: QuerySet[Channel], *, now: datetime) -> list[Concern]:
    """The concerns of these channels, and of the processes and services that all channels share.
    The worst first, at most MOST_OF_A_KIND of each kind. `now`: the database's time."""
    found = [concern for part in PARTS for concern in part(channels, now)]
    tones = ["bad", "warn", "info"]
    return sorted(found, key=lambda concern: tones.index(concern.tone))


def _planner(_channels: QuerySet[Channel], _now: datetime) -> Iterator[Concern]:
    """Concerns about Redis, the planner and beat. Does not read the database."""
    alive = worker.liveness(["plan", "tick"])
    if alive is None:
        detail = (
            "It is unknown which workers are running. Sends are stored, and rate limits allow "
            "everything. If the broker is the same Redis, nothing is sent until it is back. The "
            "doctor says what is wrong with it."
        )
        yield Concern(Kind.REDIS_AWAY, "bad", "Redis is away, or accepts no writes", detail)
    elif not (alive.processes["plan"] and alive.processes["tick"]):
        detail = (
            "No process plans notifications, so new and scheduled ones wait. "
            f"Start worker-plan. Nothing is lost. {_IF_IT_RUNS}"
        )
        yield Concern(Kind.WORKERS_MISSING, "bad", "The planner is not running", detail)
    elif not alive.has_ticked:
        detail = (
            "Schedules and retries are late. Start beat. If it runs, the processes of worker-plan "
            "hang, or ticks wait for the database or the broker: the doctor says for what. Nothing "
            "is lost."
        )
        yield Concern(Kind.BEAT_MISSING, "bad", "No tick ended in the last 15 seconds", detail)


def _platforms(channels: QuerySet[Channel], _now: datetime) -> Iterator[Concern]:
    """Concerns about the workers and the push services of the platforms in use. None while Redis is
    away."""
    used = _platforms_used(channels)
    alive = worker.liveness(used)
    if alive is None:
        return
    for queue in used:
        if not alive.processes[queue]:
            yield _worker_missing(queue)
    yield from _failing_services(used, channels)


def _worker_missing(platform: Platform) -> Concern:
    name = PLATFORM_NAMES[platform]
    detail = (
        f"Recipients on {name} wait, and bounce when their time to live ends. "
        f"Start worker-{platform}. {_IF_IT_RUNS}"
    )
    title = f"No worker for {name} is running"
    return Concern(Kind.WORKERS_MISSING, "bad", title, detail, platform=platform)


def _platforms_used(channels: QuerySet[Channel]) -> list[Platform]:
    is_enabled = {
        platform: Count("pk", filter=Q(**{f"{platform}_enabled": True})) for platform in Platform
    }
    counts = channels.aggregate(**is_enabled)
    return [platform for platform in Platform if counts[platform]]


def _failing_services(platforms: list[Platform], channels: QuerySet[Channel]) -> Iterator[Concern]:
    platform_of = {
        service: platform
        for platform in platforms
        for service in services_with_breaker(platform, settings.WEBPUSH_TRUSTED_ORIGINS)
    }
    held = [each for each in map(breakers.parts_of, breakers.held()) if each[0] in platform_of]
    for service in [service for service, channel_id in held if channel_id is None][:MOST_OF_A_KIND]:
        yield Concern(
            Kind.SERVICE_FAILING,
            "warn",
            f"The push service {service} is failing",
            "Most channels that called it recently met failures, so its batches wait for up to two "
            "minutes before the next attempt. Other push services are not delayed.",
            platform=platform_of[service],
        )
    of_channels = [(service, channel_id) for service, channel_id in held if channel_id]
    names = _names(channels, {channel_id for _, channel_id in of_channels})
    known = [(service, channel_id) for service, channel_id in of_channels if channel_id in names]
    for service, channel_id in known[:MOST_OF_A_KIND]:
        yield Concern(
            Kind.SERVICE_FAILING,
            "warn",
            f"The push service {service} is failing for this channel",
            "Half of the channel's recent calls failed there, so its batches wait for up to two "
            "minutes before the next attempt. Other channels are not delayed.",
            channel_id=channel_id,
            channel_name=names[channel_id],
            platform=platform_of[service],
        )


def _names(channels: QuerySet[Channel], ids: set[UUID]) -> dict[UUID, str]:
    return dict(channels.filter(pk__in=ids).values_list("pk", "name")) if ids else {}


def _credentials(channels: QuerySet[Channel], now: datetime) -> Iterator[Concern]:
    """Paused credentials first, then old ones."""
    is_old = Q(platform=Platform.ANDROID, updated_at__lt=now - OLD_KEY)
    notable = ProviderCredential.objects.filter(
        Q(paused_at__isnull=False) | is_old, channel__in=channels
    ).select_related("channel")
    ordered = notable.order_by(F("paused_at").asc(nulls_last=True), "updated_at")
    for each in ordered[: 2 * MOST_OF_A_KIND]:
        yield _old(each, now) if each.paused_at is None else _paused(each)


def _paused(credential: ProviderCredential) -> Concern:
    platform = Platform(credential.platform)
    provider = _PROVIDERS[platform]
    meaning = words_for(platform, credential.paused_code).meaning
    return Concern(
        Kind.PAUSED,
        "bad",
        f"{PLATFORM_NAMES[platform]} is paused: {provider} refused the credentials",
        f"{meaning} Recipients wait for up to an hour, then bounce. Correct it at {provider}, or "
        "store other credentials. The platform is tried again by itself and resumes when "
        f"{provider} accepts; a check of the credentials tries it at once.".strip(),
        quote=f"{credential.paused_code}: {credential.paused_detail}".rstrip(": "),
        since=credential.paused_at,
        tries=credential.tries,
        **_about(credential),
    )


def _old(credential: ProviderCredential, now: datetime) -> Concern:
    return Concern(
        Kind.CREDENTIALS_OLD,
        "info",
        f"Google's key has been in use for {(now - credential.updated_at).days} days",
        f"Google recommends replacing the key of a service account every {OLD_KEY.days} days, "
        "because a leaked key works until it is replaced.",
        since=credential.updated_at,
        **_about(credential),
    )


def _credentials_missing(channels: QuerySet[Channel], _now: datetime) -> Iterator[Concern]:
    """Enabled platforms without credentials."""
    marked = channels.annotate(**{f"lacks_{platform}": _lacks(platform) for platform in _PROVIDERS})
    lacking = marked.filter(Q(lacks_android=True) | Q(lacks_ios=True)).order_by("name")
    for channel in lacking[:MOST_OF_A_KIND]:
        for platform, provider in _PROVIDERS.items():
            if getattr(channel, f"lacks_{platform}"):
                yield _credential_missing(channel, platform, provider)


def _lacks(platform: Platform) -> Q:
    stored = ProviderCredential.objects.filter(channel=OuterRef("pk"), platform=platform)
    return Q(~Exists(stored), **{f"{platform}_enabled": True})


def _credential_missing(channel: Channel, platform: Platform, provider: str) -> Concern:
    return Concern(
        Kind.CREDENTIALS_MISSING,
        "bad",
        f"{PLATFORM_NAMES[platform]} has no credentials",
        f"The platform is enabled, but no credentials for {provider} are stored. Its recipients "
        "wait for up to an hour, then bounce.",
        channel_id=channel.pk,
        channel_name=channel.name,
        platform=platform,
    )


def _api_keys_ending(channels: QuerySet[Channel], now: datetime) -> Iterator[Concern]:
    ending = ApiKey.objects.filter(
        channel__in=channels,
        revoked_at__isnull=True,
        expires_at__gt=now,
        expires_at__lt=now + KEY_ENDS_SOON,
        last_used_at__gt=now - KEY_IN_USE,
    )
    for key in ending.select_related("channel").order_by("expires_at")[:MOST_OF_A_KIND]:
        days = (key.expires_at - now).days if key.expires_at else 0
        yield Concern(
            Kind.API_KEY_ENDS,
            "warn",
            f"The API key “{key}” expires in {days} days"
            if days > 1
            else f"The API key “{key}” expires soon",
            "It is in use. Issue another key and give it to the programs that use this one.",
            channel_id=key.channel_id,
            channel_name=key.channel.name,
        )


def _nearly_full(channels: QuerySet[Channel], _now: datetime) -> Iterator[Concern]:
    for channel in nearly_full_channels(channels, limit=MOST_OF_A_KIND):
        yield Concern(
            Kind.NEARLY_FULL,
            "bad" if channel.is_full else "warn",
            f"The channel holds {channel.stored:,} of at most {channel.most:,} subscriptions",
            "When it is full, a new subscription replaces the oldest one that no push service ever "
            "accepted a message for. If there is none, the new one is refused. Raise the limit in "
            "the channel's settings, or look at who subscribes.",
            channel_id=channel.channel_id,
            channel_name=channel.channel_name,
        )


def _queues(channels: QuerySet[Channel], now: datetime) -> Iterator[Concern]:
    due = Batch.objects.unhalted().filter(
        is_not_limited(),
        channel__in=channels,
        status=BatchStatus.READY,
        due_at__lt=now - LATE_BATCH,
    )
    late = due.alias(wanted_since=WANTED_SINCE).filter(wanted_since__lt=now - LATE_BATCH)
    queues = late.values("platform").annotate(
        batches=Count("pk"), recipients=Sum(RECIPIENTS_LEFT), oldest=Min(WANTED_SINCE)
    )
    for queue in queues.order_by("oldest"):
        platform, wait = queue["platform"], now - queue["oldest"]
        yield Concern(
            Kind.QUEUE,
            "bad" if wait > VERY_LATE_BATCH else "warn",
            f"{queue['recipients']:,} recipients wait on {PLATFORM_NAMES[platform]}",
            f"Batches that are due and not yet claimed: {queue['batches']:,}, the oldest for "
            f"{duration(wait.total_seconds())}. If this continues, start more worker-{platform} "
            "processes, or check whether they hang, or the push service is slow.",
            since=queue["oldest"],
            platform=platform,
        )


def _breaking(channels: QuerySet[Channel], _now: datetime) -> Iterator[Concern]:
    """Notifications with a batch that had so many lease losses that its recipients are called one
    by one."""
    broken = Batch.objects.filter(BREAKING_BATCH, channel__in=channels)
    texts = ("notification__title", "notification__body")
    groups = broken.values("notification_id", *texts, "channel_id", "channel__name").annotate(
        recipients=Sum(RECIPIENTS_LEFT)
    )
    for each in groups.order_by("notification_id")[:MOST_OF_A_KIND]:
        text = each["notification__title"] or each["notification__body"]
        yield Concern(
            Kind.BREAKING,
            "warn",
            f"Workers fail on “{Truncator(text).chars(_TEXT_SHOWN)}”",
            f"{each['recipients']:,} of its recipients are called one by one; others are not "
            "delayed. Either worker processes die while they send it: look for out-of-memory "
            "kills. Or the database refuses a recipient's row: look for outcome.refused in the "
            "log.",
            channel_id=each["channel_id"],
            channel_name=each["channel__name"],
        )


def _late_starts(channels: QuerySet[Channel], now: datetime) -> Iterator[Concern]:
    late = Notification.objects.filter(
        channel__in=channels,
        status=NotificationStatus.PENDING,
        scheduled_at__lt=now - LATE_START,
        paused_at__isnull=True,
    ).aggregate(number=Count("pk"), oldest=Min("scheduled_at"))
    if late["number"]:
        wait = now - late["oldest"]
        yield Concern(
            Kind.LATE_START,
            "bad",
            f"Notifications that are late to start: {late['number']:,}",
            f"The oldest was due {duration(wait.total_seconds())} ago. The planner or beat is not "
            "running, or is overloaded. Start them, or start more worker-plan processes.",
            since=late["oldest"],
        )


def _jumps(channels: QuerySet[Channel], now: datetime) -> Iterator[Concern]:
    return islice(jumps(channels, now), MOST_OF_A_KIND)


def _about(credential: ProviderCredential) -> dict[str, Any]:
    return {
        "channel_id": credential.channel_id,
        "channel_name": credential.channel.name,
        "platform": credential.platform,
    }


# Each reads other tables, so that the doctor can run the others if one cannot be read.
PARTS: Final[tuple[Callable[[QuerySet[Channel], datetime], Iterator[Concern]], ...]] = (
    _planner,
    _platforms,
    _credentials,
    _credentials_missing,
    _late_starts,
    limited,
    _queues,
    unreached,
    _breaking,
    _jumps,
    _nearly_full,
    _api_keys_ending,
)

"""What staff should look at: what is wrong with the processes, and with some channels.

Every read is bounded and uses an index.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.db.models import Count, DateTimeField, F, Q, QuerySet, Sum, Value
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext

from channels_app.models import ApiKey, Channel, Feed, Webhook
from channels_app.selectors import nearly_full_channels
from notifications_app.delivery.registry import services_with_breaker
from notifications_app.models import (
    BREAKING_BATCH,
    RECIPIENTS_LEFT,
    TROUBLED_AFTER,
    Automation,
    Batch,
    Newsfeed,
    Schedule,
)
from notifications_app.pipeline import breakers
from notifications_app.reporting.credentials import credentials, refused_credentials
from notifications_app.reporting.jumps import jumps
from notifications_app.reporting.late import late
from notifications_app.reporting.limited import limited
from notifications_app.reporting.unshown import unshown
from pushsvc.common import worker
from pushsvc.common.findings import Finding, Kind, Severity, worst_first
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.store import sql
from pushsvc.common.store.redis_client import redis_client
from pushsvc.common.texts import later

logger = structlog.stdlib.get_logger(__name__)

Part = Callable[[QuerySet[Channel], datetime], Iterable[Finding]]

MOST_OF_A_KIND: Final = 10

KEY_ENDS_SOON: Final = timedelta(days=14)
KEY_IN_USE: Final = timedelta(days=30)

FAILING_WEBHOOK: Final = timedelta(hours=1)

_DISABLED: Final = {
    "gone": later("Its receiver responded with 410, which means that it wants no more messages."),
    "failing": later("No call had succeeded for five days."),
}
_TEXT_SHOWN: Final = 60  # characters


def attention(channels: QuerySet[Channel], *, now: datetime) -> list[Finding]:
    """The findings about these channels, and about the processes and services that all channels
    share. The worst first, at most MOST_OF_A_KIND of each kind. `now`: the database's time."""
    return worst_first(finding for part in PARTS for finding in part(channels, now))


def shared_attention(*, now: datetime) -> Iterator[Finding]:
    """The findings about what all channels share."""
    channels = Channel.objects.all()
    found = (finding for part in _SHARED for finding in part(channels, now))
    return (finding for finding in found if finding.channel_id is None)


def channels_attention(
    channels: QuerySet[Channel], now: datetime, most: int
) -> tuple[list[Finding], bool]:
    """The findings about the credentials, keys, limits and webhooks of these channels, and about
    what sends by itself, at most about `most` of each kind; and whether all kinds could be read. A
    kind that cannot be read does not hide the others."""
    found: list[Finding] = []
    is_whole = True
    for part in (refused_credentials, limited, _webhooks, _disabled, _api_keys_ending):
        try:
            found += part(channels, now, most)
        except Exception as error:
            is_away = isinstance(error, OperationalError | InterfaceError)
            if is_away and not sql.is_cancelled(error):
                raise
            logger.exception("attention.failed", part=part.__name__)
            is_whole = False
    return found, is_whole and not redis_client().is_away  # which has the limits


def pauses_of(channel_id: UUID, platforms: Iterable[str]) -> list[Finding]:
    """The platforms whose recipients would wait, because credentials are missing or refused."""
    wanted = set(platforms) - {Platform.WEB}
    if not wanted:
        return []
    channels, now = Channel.objects.filter(pk=channel_id), timezone.now()
    found = credentials(channels, now)
    return [each for each in found if each.platform in wanted and each.severity == Severity.ERROR]


def _planner(_channels: QuerySet[Channel], _now: datetime) -> Iterator[Finding]:
    """Findings about Redis, the planner and beat. Does not read the database."""
    alive = worker.liveness(["plan", "tick"])
    if alive is None:
        yield Kind.REDIS_UNAVAILABLE.found(reason=gettext("The doctor reports the reason."))
    elif not (alive.processes["plan"] and alive.processes["tick"]):
        yield Kind.PLANNER_MISSING.found()
    elif not alive.has_ticked:
        yield Kind.BEAT_MISSING.found()


def _platforms(channels: QuerySet[Channel], _now: datetime) -> Iterator[Finding]:
    """Findings about the workers and the push services of the platforms in use. None while Redis is
    away."""
    used = _platforms_used(channels)
    alive = worker.liveness(used)
    if alive is None:
        return
    for queue in used:
        if not alive.processes[queue]:
            name = PLATFORM_NAMES[queue]
            yield Kind.WORKERS_MISSING.found(name=name, queue=queue, platform=queue)
    yield from _failing_services(used, channels)


def _platforms_used(channels: QuerySet[Channel]) -> list[Platform]:
    is_enabled = {
        platform: Count("pk", filter=Q(**{f"{platform}_enabled": True})) for platform in Platform
    }
    counts = channels.aggregate(**is_enabled)
    return [platform for platform in Platform if counts[platform]]


def _failing_services(platforms: list[Platform], channels: QuerySet[Channel]) -> Iterator[Finding]:
    platform_of = {
        service: platform
        for platform in platforms
        for service in services_with_breaker(platform, settings.WEBPUSH_TRUSTED_ORIGINS)
    }
    held = [each for each in map(breakers.parts_of, breakers.held()) if each[0] in platform_of]
    names = _names(channels, {channel_id for _, channel_id in held if channel_id})
    whole = [(service, None) for service, channel_id in held if channel_id is None]
    own = [(service, (id_, names[id_])) for service, id_ in held if id_ and id_ in names]
    for service, channel in (*whole[:MOST_OF_A_KIND], *own[:MOST_OF_A_KIND]):
        yield Kind.SERVICE_FAILING.found(
            service=service, channel=channel, platform=platform_of[service]
        )


def _names(channels: QuerySet[Channel], ids: set[UUID]) -> dict[UUID, str]:
    return dict(channels.filter(pk__in=ids).values_list("pk", "name")) if ids else {}


def _api_keys_ending(
    channels: QuerySet[Channel], now: datetime, most: int = MOST_OF_A_KIND
) -> Iterator[Finding]:
    ending = ApiKey.objects.filter(
        channel__in=channels,
        revoked_at__isnull=True,
        expires_at__gt=now,
        expires_at__lt=now + KEY_ENDS_SOON,
        last_used_at__gt=now - KEY_IN_USE,
    )
    for key in ending.select_related("channel").order_by("expires_at")[:most]:
        days = (key.expires_at - now).days if key.expires_at else 0
        when = gettext("in %(days)s days") % {"days": days} if days > 1 else gettext("soon")
        yield Kind.API_KEY_ENDS.found(
            key=key, when=when, subject=key.pk, channel=(key.channel_id, key.channel.name)
        )


def _nearly_full(channels: QuerySet[Channel], _now: datetime) -> Iterator[Finding]:
    for channel in nearly_full_channels(channels, limit=MOST_OF_A_KIND):
        yield Kind.CHANNEL_FULL.found(
            severity=Severity.ERROR if channel.is_full else Severity.WARNING,
            stored=channel.stored,
            most=channel.most,
            channel=(channel.channel_id, channel.channel_name),
        )


def _breaking(channels: QuerySet[Channel], _now: datetime) -> Iterator[Finding]:
    """Notifications with a batch that had so many lease losses that its recipients are called one
    by one."""
    broken = Batch.objects.filter(BREAKING_BATCH, channel__in=channels)
    texts = ("notification__title", "notification__body")
    groups = broken.values("notification_id", *texts, "channel_id", "channel__name").annotate(
        recipients=Sum(RECIPIENTS_LEFT)
    )
    for each in groups.order_by("notification_id")[:MOST_OF_A_KIND]:
        text = each["notification__title"] or each["notification__body"]
        yield Kind.WORKERS_BREAK.found(
            text=Truncator(text).chars(_TEXT_SHOWN),
            recipients=each["recipients"],
            channel=(each["channel_id"], each["channel__name"]),
        )


def _webhooks(
    channels: QuerySet[Channel], now: datetime, most: int = MOST_OF_A_KIND
) -> Iterator[Finding]:
    """The worker, if a webhook or a newsfeed needs it, facts that it could not read, then webhooks
    that the service disabled, and failing ones."""
    own = Webhook.objects.filter(channel__in=channels)
    alive = worker.liveness(["hooks"])
    needed, unreadable = _needs_of_hooks(channels)
    if alive and not alive.processes["hooks"] and needed:
        yield Kind.HOOKS_MISSING.found()
    if unreadable:
        yield Kind.FACTS_UNREADABLE.found(number=unreadable)
    is_failing = Q(is_enabled=True, failing_since__lt=now - FAILING_WEBHOOK)
    troubled = own.filter(is_failing | ~Q(disabled_code="")).select_related("channel")
    for each in troubled.order_by("is_enabled", "failing_since")[:most]:
        about: dict[str, Any] = {
            "webhook": each,
            "subject": each.pk,
            "quote": each.last_answer,
            "since": each.failing_since,
            "channel": (each.channel_id, each.channel.name),
        }
        if each.is_enabled:
            yield Kind.WEBHOOK_FAILING.found(**about)
        else:
            yield Kind.WEBHOOK_DISABLED.found(reason=_DISABLED.get(each.disabled_code, ""), **about)


def _needs_of_hooks(channels: QuerySet[Channel]) -> tuple[bool, int]:
    """Whether a webhook or a newsfeed needs the worker, and how many facts it could not read."""
    of_channels = {"channel_id__in": channels.values("pk")}
    users = (model.objects.filter(**of_channels, is_enabled=True) for model in (Webhook, Newsfeed))
    first, second = (each.values_list(Value("users"), Value(1))[:1] for each in users)
    facts = Feed.objects.filter(**of_channels, unreadable_at__isnull=False)
    counted = (
        facts.values(what=Value("facts")).annotate(number=Count("pk")).values_list("what", "number")
    )
    found = dict(counted.union(first, second, all=True))
    return "users" in found, found.get("facts", 0)


def _disabled(
    channels: QuerySet[Channel], _now: datetime, most: int = MOST_OF_A_KIND
) -> Iterator[Finding]:
    """Schedules, automations and newsfeeds that the service disabled, and newsfeeds that cannot be
    read. One statement finds them."""
    none = Cast(Value(None), DateTimeField())
    stopped = ~Q(disabled_code="") & Q(is_enabled=False)
    troubled = ~Q(disabled_code="") | Q(
        is_enabled=True, failing_since__isnull=False, failures__gte=TROUBLED_AFTER
    )
    first, *others = (
        model.objects.filter(which, channel__in=channels)
        .order_by("pk")
        .values_list(
            "pk", "name", "disabled_code", "channel_id", "channel__name", error, since, Value(kind)
        )[:most]
        for model, kind, which, error, since in (
            (Schedule, "schedule", stopped, Value(""), none),
            (Automation, "automation", stopped, Value(""), none),
            (Newsfeed, "newsfeed", troubled, F("last_error"), F("failing_since")),
        )
    )
    for pk, name, code, channel_id, channel_name, error, since, kind in first.union(
        *others, all=True
    ):
        name = Truncator(name).chars(_TEXT_SHOWN)
        about: dict[str, Any] = {
            "subject": pk,
            "channel": (channel_id, channel_name),
            "since": since,
        }
        if kind == "schedule":
            yield Kind.SCHEDULE_DISABLED.found(schedule=name, code=code, **about)
        elif kind == "automation":
            yield Kind.AUTOMATION_DISABLED.found(automation=name, code=code, **about)
        elif code:
            yield Kind.NEWSFEED_DISABLED.found(newsfeed=name, code=code, **about)
        else:
            yield Kind.NEWSFEED_FAILING.found(newsfeed=name, error=error, **about)


def _unshown(channels: QuerySet[Channel], now: datetime) -> Iterator[Finding]:
    return islice(unshown(channels, now), MOST_OF_A_KIND)


def _jumps(channels: QuerySet[Channel], now: datetime) -> Iterator[Finding]:
    return islice(jumps(channels, now), MOST_OF_A_KIND)


# Each reads other tables, so that the doctor can run the others if one cannot be read.
_SHARED: Final[tuple[Part, ...]] = (
    _planner,
    _platforms,
    late,
    _webhooks,
)
PARTS: Final[tuple[Part, ...]] = (
    *_SHARED,
    credentials,
    limited,
    _breaking,
    _disabled,
    _jumps,
    _unshown,
    _nearly_full,
    _api_keys_ending,
)

"""Finds notifications that nobody starts, and batches that nobody takes or whose calls all fail.

If few calls fail, no breaker shows them.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, F, Min, QuerySet, Sum, Value

from channels_app.models import Channel
from notifications_app.delivery.registry import services_with_breaker
from notifications_app.models import (
    HAS_NO_RATE,
    RECIPIENTS_LEFT,
    WANTED_SINCE,
    Batch,
    Delivery,
    Notification,
)
from notifications_app.reporting.limited import is_not_limited
from notifications_app.states import BatchStatus, DeliveryStatus, NotificationStatus
from pushsvc.common.findings import Finding, Kind, Severity
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.quantities import duration

LATE_START: Final = timedelta(seconds=15)
LATE_BATCH: Final = timedelta(seconds=60)
VERY_LATE_BATCH: Final = timedelta(minutes=10)
UNREACHED: Final = timedelta(seconds=60)
LONG_UNREACHED: Final = timedelta(minutes=10)


def late(channels: QuerySet[Channel], now: datetime) -> Iterator[Finding]:
    """Notifications that are late to start. By platform: batches that are due and that nobody
    claimed for a minute, and batches that were called and reached nobody for over a minute. Read in
    one statement."""
    ready = Batch.objects.unhalted().filter(
        is_not_limited(), channel__in=channels, status=BatchStatus.READY
    )
    failing = _failing(ready, now)
    due = _counted(_due(ready, now), "due", Min(WANTED_SINCE))
    called = _counted(failing, "called", Min("plan__due_at"))
    rows = [row for row in due.union(called, _starts(channels, now), all=True) if row[3]]
    for what, platform, recipients, number, since in sorted(rows, key=_order):
        age = duration((now - since).total_seconds())
        if what == "start":
            yield Kind.START_LATE.found(number=number, age=age, since=since)
            continue
        about: dict[str, Any] = {
            "name": PLATFORM_NAMES[platform],
            "recipients": recipients,
            "batches": number,
            "age": age,
            "since": since,
            "platform": platform,
        }
        if what == "due":
            severity = _severity(now - since > VERY_LATE_BATCH)
            yield Kind.QUEUE_LATE.found(severity=severity, queue=platform, **about)
        elif quote := _last_failure(failing.filter(platform=platform)):
            severity = _severity(now - since > LONG_UNREACHED)
            yield Kind.CALLS_FAIL.found(severity=severity, quote=quote, **about)


def _order(row: tuple[Any, ...]) -> tuple[int, datetime]:
    return ("start", "due", "called").index(row[0]), row[-1]


def _starts(channels: QuerySet[Channel], now: datetime) -> QuerySet[Notification, tuple[Any, ...]]:
    """One row, whose number may be 0."""
    waiting = Notification.objects.filter(
        channel__in=channels,
        status=NotificationStatus.PENDING,
        scheduled_at__lt=now - LATE_START,
        paused_at__isnull=True,
    )
    counted = waiting.values(what=Value("start"), on=Value("")).annotate(
        recipients=Value(0), starts=Count("pk"), oldest=Min("scheduled_at")
    )
    return counted.values_list("what", "on", "recipients", "starts", "oldest")


def _due(ready: QuerySet[Batch], now: datetime) -> QuerySet[Batch]:
    late = ready.filter(HAS_NO_RATE, due_at__lt=now - LATE_BATCH)
    return late.alias(wanted_since=WANTED_SINCE).filter(wanted_since__lt=now - LATE_BATCH)


def _failing(ready: QuerySet[Batch], now: datetime) -> QuerySet[Batch]:
    """Push services without a breaker do not count: anybody can subscribe with a host that never
    responds. Nor do push services that limit the channel."""
    services = [
        service
        for platform in Platform
        for service in services_with_breaker(platform, settings.WEBPUSH_TRUSTED_ORIGINS)
    ]
    return ready.filter(
        push_service__in=services,
        due_at__gt=now,
        lease_number__gt=0,
        delivered_count=0,
        bounced_count=0,
        plan__due_at__lt=now - UNREACHED,
    )


def _counted(batches: QuerySet[Batch], what: str, since: Min) -> QuerySet[Batch, tuple[Any, ...]]:
    groups = batches.values(what=Value(what), on=F("platform")).annotate(
        recipients=Sum(RECIPIENTS_LEFT), batches=Count("pk"), oldest=since
    )
    return groups.values_list("what", "on", "recipients", "batches", "oldest")


def _severity(is_long: bool) -> Severity:
    return Severity.ERROR if is_long else Severity.WARNING


def _last_failure(batches: QuerySet[Batch]) -> str:
    """Code and detail of a recipient of the oldest batch; "" if no call failed."""
    oldest = batches.order_by("plan__due_at", "pk").values("pk")[:1]
    waiting = Delivery.objects.filter(batch_id__in=oldest, status=DeliveryStatus.WAITING)
    called = waiting.exclude(code="").values_list("code", "detail")
    return next((f"{code}: {detail}".rstrip(": ") for code, detail in called[:1]), "")

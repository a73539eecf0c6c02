"""Finds recipients whose calls all fail, which no breaker shows if there are few."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Count, Min, QuerySet, Sum

from channels_app.models import Channel
from notifications_app.delivery.registry import services_with_breaker
from notifications_app.models import RECIPIENTS_LEFT, Batch, Delivery
from notifications_app.reporting.limited import is_not_limited
from notifications_app.states import BatchStatus, DeliveryStatus
from pushsvc.common.findings import Finding, Kind, Severity
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.quantities import duration

UNREACHED: Final = timedelta(seconds=60)
LONG_UNREACHED: Final = timedelta(minutes=10)


def unreached(channels: QuerySet[Channel], now: datetime) -> Iterator[Finding]:
    """Platforms with batches that were called and reached nobody, for over a minute.

    Push services without a breaker do not count: anybody can subscribe with a host that never
    responds. Nor do push services that limit the channel.
    """
    services = [
        service
        for platform in Platform
        for service in services_with_breaker(platform, settings.WEBPUSH_TRUSTED_ORIGINS)
    ]
    failing = Batch.objects.unhalted().filter(
        is_not_limited(),
        channel__in=channels,
        push_service__in=services,
        status=BatchStatus.READY,
        due_at__gt=now,
        lease_number__gt=0,
        delivered_count=0,
        bounced_count=0,
        plan__due_at__lt=now - UNREACHED,
    )
    groups = failing.values("platform").annotate(
        recipients=Sum(RECIPIENTS_LEFT), batches=Count("pk"), since=Min("plan__due_at")
    )
    for group in groups.order_by("since"):
        platform = group["platform"]
        quote = _last_failure(failing.filter(platform=platform))
        if quote:
            age = now - group["since"]
            yield Kind.CALLS_FAIL.found(
                severity=Severity.ERROR if age > LONG_UNREACHED else Severity.WARNING,
                recipients=group["recipients"],
                batches=group["batches"],
                name=PLATFORM_NAMES[platform],
                age=duration(age.total_seconds()),
                quote=quote,
                since=group["since"],
                platform=platform,
            )


def _last_failure(batches: QuerySet[Batch]) -> str:
    """Code and detail of a recipient of the oldest batch; "" if no call failed."""
    oldest = batches.order_by("plan__due_at", "pk").values("pk")[:1]
    waiting = Delivery.objects.filter(batch_id__in=oldest, status=DeliveryStatus.WAITING)
    called = waiting.exclude(code="").values_list("code", "detail")
    return next((f"{code}: {detail}".rstrip(": ") for code, detail in called[:1]), "")

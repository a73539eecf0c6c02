"""Counts the pipeline's work for /metrics, after the transaction that wrote it."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import assert_never

from django.conf import settings

from notifications_app.delivery.registry import services_with_breaker
from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Gone,
    Misconfigured,
    Rejected,
)
from notifications_app.models import Batch
from notifications_app.pipeline.lease import Lease
from notifications_app.pipeline.transitions import INTERNAL_ERROR, Transition
from notifications_app.states import DeliveryStatus
from pushsvc.common import metrics
from pushsvc.common.platforms import Platform

_NOT_CALLED = "not_called"


def flushed(lease: Lease, written: Sequence[Transition], *, seconds: float) -> None:
    """Counts a flush. `lease`: any of the flush. `seconds`: how long it took."""
    if not written:
        return
    platform, now = lease.platform, lease.now()
    metrics.FLUSH_SIZE.observe(len(written), platform)
    metrics.FLUSH_SECONDS.observe(seconds, platform)
    metrics.HAND_OVER.observe_all(
        [
            (now - each.delivery.wanted_at).total_seconds()
            for each in written
            if each.status == DeliveryStatus.DELIVERED
        ],
        platform,
    )
    service = _known_service(platform, lease.push_service)
    for outcome, times in Counter(map(_outcome, written)).items():
        metrics.OUTCOMES.add(times, platform, service, outcome)


def bounced(batch: Batch, recipients: int) -> None:
    """Counts recipients of an idle batch that bounced without a call."""
    platform = Platform(batch.platform)
    service = _known_service(platform, batch.push_service)
    metrics.OUTCOMES.add(recipients, platform, service, _NOT_CALLED)


def called(lease: Lease, seconds: Sequence[float], *, size: int) -> None:
    """Counts calls of a pass. `seconds`: how long each took. `size`: bytes of all bodies."""
    labels = (lease.platform, _known_service(lease.platform, lease.push_service))
    metrics.CALL_SECONDS.observe_all(seconds, *labels)
    metrics.PUSH_BYTES.add(size, *labels)


def _known_service(platform: Platform, push_service: str) -> str:
    """The push service, or `other` if it has no breaker. A row may name a host that the operator
    does not trust any more."""
    known = _breakers_of(platform, settings.WEBPUSH_TRUSTED_ORIGINS)
    return push_service if push_service in known else metrics.OTHER


@lru_cache(maxsize=16)
def _breakers_of(platform: Platform, trusted_origins: frozenset[str]) -> frozenset[str]:
    return frozenset(services_with_breaker(platform, trusted_origins))


def _outcome(transition: Transition) -> str:
    """The label of the transition's outcome."""
    if transition.code == INTERNAL_ERROR:
        return INTERNAL_ERROR
    match transition.outcome:
        case None:
            return _NOT_CALLED
        case Accepted():
            return "accepted"
        case Deferred(outage=outage):
            return "outage" if outage else "deferred"
        case Rejected():
            return "rejected"
        case Gone(suspect=suspect):
            return "suspect" if suspect else "gone"
        case Misconfigured():
            return "misconfigured"
        case _:
            assert_never(transition.outcome)

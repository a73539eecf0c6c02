"""GET /metrics: the state of the whole installation, rendered for Prometheus.

Each scrape reads the database and Redis, so every web process gives the same answer.
"""

import hmac
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from rest_framework.request import Request
from typing_extensions import override

from channels_app.selectors import installation_totals
from notifications_app.reporting.installation import (
    OpenBatches,
    open_batches,
    open_notifications,
)
from notifications_app.states import BatchStatus
from pushsvc.common.errors import PushsvcError
from pushsvc.common.http.client_address import is_from_this_machine
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.platforms import Platform
from pushsvc.common.worker import live_processes

_TOTALS: Final = ("notifications_sent", "recipients", "delivered", "bounced", "clicked")
_OPEN_STATUSES: Final = tuple(each for each in BatchStatus.values if each != BatchStatus.DONE)
_QUEUES: Final = ("tick", "plan", *Platform)
_NO_BATCHES: Final = OpenBatches(0, timedelta())


class MetricsDenied(PushsvcError):
    status = 401
    code = "metrics_denied"
    title = "Metrics are not public"
    detail = "Send METRICS_TOKEN as `Authorization: Bearer <token>`."

    def __init__(self) -> None:
        super().__init__(headers={"WWW-Authenticate": "Bearer"})


@extend_schema(exclude=True)
class MetricsView(ApiView):
    def get(self, request: Request) -> HttpResponse:
        if not _may_read(request):
            raise MetricsDenied
        registry = CollectorRegistry()
        registry.register(InstallationCollector())
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: Request) -> bool:
    """Whether the token is right, or a process on this machine asks without one."""
    sent = request.headers.get("Authorization", "")
    if sent:
        right = f"Bearer {settings.METRICS_TOKEN}"
        return bool(settings.METRICS_TOKEN) and hmac.compare_digest(sent.encode(), right.encode())
    return is_from_this_machine(django_request(request))


class InstallationCollector(Collector):
    """Reads at every scrape. No query reads finished work."""

    @override
    def collect(self) -> Iterable[Metric]:
        yield from _notifications()
        yield from _batches()
        yield from _totals()
        workers = GaugeMetricFamily(
            "pushsvc_worker_processes",
            "Worker processes that sent a heartbeat in the last 15 seconds.",
            labels=["queue"],
        )
        for queue in _QUEUES:
            workers.add_metric([queue], live_processes(queue))
        yield workers


def _notifications() -> Iterator[Metric]:
    counts = GaugeMetricFamily(
        "pushsvc_notifications", "Notifications that are not finished.", labels=["state"]
    )
    found = open_notifications()
    for state in ("due", "paused", "processing", "scheduled"):
        counts.add_metric([state], getattr(found, state))
    yield counts
    yield GaugeMetricFamily(
        "pushsvc_notification_start_lateness_seconds",
        "How long the oldest due notification has waited for its start.",
        value=found.start_lateness.total_seconds(),
    )


def _batches() -> Iterator[Metric]:
    counts = GaugeMetricFamily(
        "pushsvc_batches", "Batches that are not done.", labels=["platform", "status"]
    )
    ages = GaugeMetricFamily(
        "pushsvc_batch_lateness_seconds",
        "How long the oldest due batch has waited for a worker.",
        labels=["platform"],
    )
    found = open_batches()
    for platform in Platform:
        for status in _OPEN_STATUSES:
            counts.add_metric([platform, status], found.get((platform, status), _NO_BATCHES).count)
        ready = found.get((platform, BatchStatus.READY), _NO_BATCHES)
        ages.add_metric([platform], max(0.0, ready.lateness.total_seconds()))
    yield counts
    yield ages


def _totals() -> Iterator[Metric]:
    totals = installation_totals()
    for name in _TOTALS:
        meaning = f"All channels' {name.replace('_', ' ')}."
        yield CounterMetricFamily(f"pushsvc_{name}", meaning, value=getattr(totals, name))
    subscribers = GaugeMetricFamily(
        "pushsvc_subscribers", "Active subscriptions.", labels=["platform"]
    )
    for platform in Platform:
        subscribers.add_metric([platform], getattr(totals, f"{platform}_subscribers"))
    yield subscribers

"""GET /metrics: the state of the whole installation, rendered for Prometheus.

Each scrape reads the database, and Redis, to which processes report their counts. So every web
process gives the same answer. While Redis is away, its counts are missing.
"""

import hmac
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import accumulate
from typing import Final

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from rest_framework.request import Request
from typing_extensions import override

from channels_app.selectors import installation_totals
from notifications_app.delivery.registry import services_with_breaker
from notifications_app.pipeline import breakers, web_rate
from notifications_app.reporting.installation import (
    OpenBatches,
    open_batches,
    open_notifications,
)
from notifications_app.states import BatchStatus
from pushsvc.common import metrics, worker
from pushsvc.common.errors import PushsvcError
from pushsvc.common.http.client_address import is_from_this_machine
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.platforms import Platform
from pushsvc.common.store import metric_reports, sql

_TOTALS: Final = ("notifications_sent", "recipients", "delivered", "bounced", "clicked")
_OPEN_STATUSES: Final = tuple(each for each in BatchStatus.values if each != BatchStatus.DONE)
_NO_BATCHES: Final = OpenBatches(0, 0, timedelta())


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
    """Whether the token is right, or a process on this machine sends no token."""
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
        yield from _database()
        alive = worker.liveness(worker.QUEUES)
        yield GaugeMetricFamily(
            "pushsvc_redis_up", "Whether Redis answers and accepts writes.", value=alive is not None
        )
        yield from _workers(alive)
        yield from _breakers()
        yield from _reported()


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
    waiting = GaugeMetricFamily(
        "pushsvc_waiting_recipients", "Recipients without an outcome.", labels=["platform"]
    )
    for platform in Platform:
        left = (found.get((platform, status), _NO_BATCHES).recipients for status in _OPEN_STATUSES)
        waiting.add_metric([platform], sum(left))
    yield counts
    yield ages
    yield waiting


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


def _database() -> Iterator[Metric]:
    ((used, most, is_writable),) = sql.rows(_DATABASE, {})
    yield GaugeMetricFamily(
        "pushsvc_database_connections", "Connections to PostgreSQL, of all programs.", value=used
    )
    yield GaugeMetricFamily(
        "pushsvc_database_connections_max", "Connections that PostgreSQL allows.", value=most
    )
    yield GaugeMetricFamily(
        "pushsvc_database_writable",
        "Whether PostgreSQL accepts writes, and no commit has waited for a standby for 10 seconds.",
        value=is_writable,
    )


def _workers(alive: worker.Liveness | None) -> Iterator[Metric]:
    processes = GaugeMetricFamily(
        "pushsvc_worker_processes",
        "Worker processes that sent a heartbeat in the last 15 seconds.",
        labels=["queue"],
    )
    ticks = GaugeMetricFamily(
        "pushsvc_tick_seen", "Whether a tick ended in the last 15 seconds.", labels=[]
    )
    if alive is not None:
        for queue, count in alive.processes.items():
            processes.add_metric([queue], count)
        ticks.add_metric([], alive.has_ticked)
    yield processes
    yield ticks


def _breakers() -> Iterator[Metric]:
    services = sorted(
        service
        for platform in Platform
        for service in services_with_breaker(platform, settings.WEBPUSH_TRUSTED_ORIGINS)
    )
    state = GaugeMetricFamily(
        "pushsvc_breaker_state",
        "Whether the push service's breaker is in this state.",
        labels=["push_service", "state"],
    )
    channels = GaugeMetricFamily(
        "pushsvc_channel_breakers_open",
        "Channels whose own breaker at the push service is open.",
        labels=["push_service"],
    )
    probing = GaugeMetricFamily(
        "pushsvc_channel_breakers_half_open",
        "Channels whose own breaker at the push service is half-open.",
        labels=["push_service"],
    )
    limited = GaugeMetricFamily(
        "pushsvc_limited_channels",
        "Channels of which the push service accepts only some messages a minute.",
        labels=["push_service"],
    )
    limits = Counter(limit.service for limit in web_rate.limits())
    found = breakers.states()
    if found is not None:
        for service in services:
            for name, is_so in found.of(service).items():
                state.add_metric([service, name], is_so)
            channels.add_metric([service], found.channels_open[service])
            probing.add_metric([service], found.channels_half_open[service])
            limited.add_metric([service], limits[service])
    yield state
    yield channels
    yield probing
    yield limited


def _reported() -> Iterator[Metric]:
    """The counts that processes reported."""
    found = metric_reports.read()
    processes = GaugeMetricFamily(
        "pushsvc_reporting_processes",
        "Processes that reported what they counted in the last 15 seconds.",
        labels=["kind"],
    )
    if found is not None:
        for kind in ("web", "worker"):
            processes.add_metric([kind], found.processes[kind])
    yield processes
    sums = _by_metric(found.sums if found else {})
    for metric in metrics.ALL:
        yield _family(metric, sums[metric.name] if found else {})


_Samples = Mapping[tuple[str, ...], Mapping[str, int]]


def _by_metric(sums: Mapping[str, int]) -> Mapping[str, _Samples]:
    """The sums by name, by the values of labels, and by bucket. Processes of other versions may
    have reported other metrics."""
    found: dict[str, dict[tuple[str, ...], dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for field, amount in sums.items():
        name, *values, part = field.split(metrics.SEPARATOR)
        found[name][tuple(values)][part] = amount
    return found


def _family(metric: metrics.Count | metrics.Histogram, samples: _Samples) -> Metric:
    fitting = ((each, parts) for each, parts in samples.items() if len(each) == len(metric.labels))
    if isinstance(metric, metrics.Count):
        count = CounterMetricFamily(metric.name, metric.meaning, labels=metric.labels)
        for values, parts in fitting:
            count.add_metric(values, sum(parts.values()) / metric.scale)
        return count
    histogram = HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for values, parts in fitting:
        histogram.add_metric(values, *_buckets(metric, parts))
    return histogram


def _buckets(
    histogram: metrics.Histogram, parts: Mapping[str, int]
) -> tuple[list[tuple[str, float]], float]:
    """The cumulative buckets, and the sum."""
    counted = [parts.get(part, 0) for part in histogram.parts]
    sums = list(zip(histogram.parts, map(float, accumulate(counted)), strict=True))
    return sums, parts.get(metrics.SUM, 0) / metrics.MILLIONTHS


# Connections of all databases and roles, because they share the limit. For connections of other
# roles, a role without special rights does not see the type.
_DATABASE: Final = """
SELECT count(*), current_setting('max_connections')::int,
  current_setting('transaction_read_only') = 'off' AND count(*) FILTER (
    WHERE datname = current_database() AND wait_event = 'SyncRep'
      AND query_start < clock_timestamp() - interval '10 seconds') = 0
FROM pg_stat_activity
WHERE datid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'
"""

"""GET /metrics: the state of the whole installation, rendered for Prometheus.

Each scrape reads the database, and Redis, to which processes report their counts. So every web
process gives the same response. While Redis is away, its counts are missing.
"""

import hmac
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import accumulate, chain
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

from channels_app.models import KEPT_TOTALS
from channels_app.selectors import ChannelTotals, installation_totals
from notifications_app.delivery.registry import services_with_breaker
from notifications_app.pipeline import breakers, web_rate
from notifications_app.reporting.attention import shared_attention
from notifications_app.reporting.installation import (
    OpenBatches,
    open_batches,
    open_notifications,
    waiting_webhooks,
)
from notifications_app.states import BatchStatus
from pushsvc.common import metrics, worker
from pushsvc.common.errors import PushsvcError
from pushsvc.common.http.client_address import is_from_this_machine
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.platforms import Platform
from pushsvc.common.store import metric_reports, sql
from pushsvc.ops.doctor import database

_OPEN_STATUSES: Final = tuple(each for each in BatchStatus.values if each != BatchStatus.DONE)
_NO_BATCHES: Final = OpenBatches(0, 0, 0, timedelta())


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
        families = {
            name: GaugeMetricFamily(f"pushsvc_{name}", meaning, labels=labels)
            for name, (meaning, *labels) in _GAUGES.items()
        }
        totals, reported = installation_totals(), metric_reports.read()
        samples = (
            *(_work(totals), _webhooks(), _database()),
            *(_processes(reported), _breakers(), _findings()),
        )
        for name, values, number in chain(*samples):
            families[name].add_metric(values, number)
        yield from families.values()
        for name in KEPT_TOTALS:
            meaning = f"All channels' {name.replace('_', ' ')}."
            yield CounterMetricFamily(f"pushsvc_{name}", meaning, value=getattr(totals, name))
        sums = _by_metric(reported.sums if reported else {})
        for metric in metrics.ALL:
            yield _family(metric, sums[metric.name] if reported else {})


# The meaning and the labels. What Redis knows has no samples while it is away.
_GAUGES: Final = {
    "notifications": ("Notifications that are not finished.", "state"),
    "notification_start_lateness_seconds": ("Wait of the oldest due notification for its start.",),
    "batches": ("Batches that are not done.", "platform", "status"),
    "batch_lateness_seconds": ("Wait of the oldest due batch for a worker.", "platform"),
    "waiting_recipients": ("Recipients without an outcome.", "platform"),
    "due_recipients": ("Recipients that workers have now.", "platform"),
    "webhook_messages": ("Messages that wait for webhooks.",),
    "webhook_lateness_seconds": ("Wait of the oldest due message or fact for worker-hooks.",),
    "subscribers": ("Active subscriptions.", "platform"),
    "database_connections": ("Connections to PostgreSQL, of all programs.",),
    "database_connections_max": ("Connections that PostgreSQL allows.",),
    "database_writable": ("Whether PostgreSQL accepts writes, and no commit waits for a standby.",),
    "redis_up": ("Whether Redis responds and accepts writes.",),
    "worker_processes": ("Worker processes with a heartbeat in the last 15 seconds.", "queue"),
    "tick_seen": ("Whether a tick ended in the last 15 seconds.",),
    "reporting_processes": ("Processes that reported in the last 15 seconds.", "kind"),
    "breaker_state": ("Whether its breaker is in this state.", "push_service", "state"),
    "channel_breakers_open": ("Channels whose own breaker is open.", "push_service"),
    "channel_breakers_half_open": ("Channels whose own breaker is half-open.", "push_service"),
    "limited_channels": ("Channels that the push service limits.", "push_service"),
    "findings": ("What the doctor finds wrong for all channels.", "code", "severity", "section"),
}
_Samples = Iterator[tuple[str, Sequence[str], float]]


def _work(totals: ChannelTotals) -> _Samples:
    notifications, lateness = open_notifications()
    for state in ("due", "paused", "processing", "scheduled"):
        yield "notifications", [state], notifications[state]
    yield "notification_start_lateness_seconds", [], lateness.total_seconds()
    batches = defaultdict(lambda: _NO_BATCHES, open_batches())
    for platform in Platform:
        for status in _OPEN_STATUSES:
            yield "batches", [platform, status], batches[platform, status].count
        ready = batches[platform, BatchStatus.READY]
        yield "batch_lateness_seconds", [platform], max(0.0, ready.lateness.total_seconds())
        waiting = sum(batches[platform, status].recipients for status in _OPEN_STATUSES)
        yield "waiting_recipients", [platform], waiting
        leased = batches[platform, BatchStatus.LEASED]
        yield "due_recipients", [platform], ready.due_recipients + leased.due_recipients
        yield "subscribers", [platform], totals.subscribers_on(platform)


def _webhooks() -> _Samples:
    count, lateness = waiting_webhooks()
    yield "webhook_messages", [], count
    yield "webhook_lateness_seconds", [], lateness.total_seconds()


def _database() -> _Samples:
    most, roles = database.connections()
    yield "database_connections", [], sum(number for _, number in roles)
    yield "database_connections_max", [], most
    yield "database_writable", [], not [*database.read_only(), *database.standby_missing()]


def _processes(reported: metric_reports.Reported | None) -> _Samples:
    alive = worker.liveness(worker.QUEUES)
    yield "redis_up", [], alive is not None
    if alive:
        yield "tick_seen", [], alive.has_ticked
        for queue, count in alive.processes.items():
            yield "worker_processes", [queue], count
    if reported:
        for kind in ("web", "worker"):
            yield "reporting_processes", [kind], reported.processes[kind]


def _breakers() -> _Samples:
    found = breakers.states()
    if found is None:
        return
    limits = Counter(limit.service for limit in web_rate.limits())
    for platform in Platform:
        for service in services_with_breaker(platform, settings.WEBPUSH_TRUSTED_ORIGINS):
            for state, is_so in found.of(service).items():
                yield "breaker_state", [service, state], is_so
            yield "channel_breakers_open", [service], found.channels_open[service]
            yield "channel_breakers_half_open", [service], found.channels_half_open[service]
            yield "limited_channels", [service], limits[service]


def _findings() -> _Samples:
    found = [
        *database.read_only(),
        *database.standby_missing(),
        *database.connections_scarce(),
        *shared_attention(now=sql.now()),
    ]
    counts = Counter((each.code, each.severity, each.section) for each in found)
    for labels, number in counts.items():
        yield "findings", labels, number


_Sums = Mapping[tuple[str, ...], Mapping[str, int]]


def _by_metric(sums: Mapping[str, int]) -> Mapping[str, _Sums]:
    """The sums by name, by the values of labels, and by bucket. Processes of other versions may
    have reported other metrics."""
    found: dict[str, dict[tuple[str, ...], dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for field, amount in sums.items():
        name, *values, part = field.split(metrics.SEPARATOR)
        found[name][tuple(values)][part] = amount
    return found


def _family(metric: metrics.Count | metrics.Histogram, samples: _Sums) -> Metric:
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

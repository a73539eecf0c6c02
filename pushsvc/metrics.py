"""GET /metrics: the whole installation's state, the same from every web process.

Everything is read from the database and Redis when it is asked for; no process counts for itself.
"""

import hmac
from collections.abc import Iterable, Iterator

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from rest_framework.request import Request
from typing_extensions import override

from pushsvc.common.errors import PushsvcError
from pushsvc.common.http.client_address import is_from_this_machine
from pushsvc.common.http.drf import ApiView
from pushsvc.common.store import sql
from pushsvc.common.worker import live_processes

_TOTALS = ("notifications_sent", "recipients", "delivered", "bounced", "clicked")
_PLATFORMS = ("web", "android", "ios")
_QUEUES = ("tick", "plan", *_PLATFORMS)

_NOTIFICATIONS = """
    SELECT status, count(*),
           coalesce(extract(epoch FROM now() - min(scheduled_at)), 0)::float
      FROM notifications_app_notification
     WHERE status = 'processing' OR (status = 'pending' AND scheduled_at <= now())
     GROUP BY status
"""
_SCHEDULED = """
    SELECT count(*) FROM notifications_app_notification
     WHERE status = 'pending' AND scheduled_at > now()
"""
_BATCHES = """
    SELECT platform, status, count(*),
           coalesce(extract(epoch FROM now() - min(due_at)), 0)::float
      FROM notifications_app_batch
     WHERE status <> 'done'
     GROUP BY platform, status
"""
_CHANNEL_TOTALS = f"""
    SELECT {", ".join(f"coalesce(sum({name}), 0)::bigint" for name in _TOTALS)},
           {", ".join(f"coalesce(sum({name}_subscribers), 0)::bigint" for name in _PLATFORMS)}
      FROM channels_app_channelcounter
"""  # noqa: S608 - names of our own


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
    """The right token; or none, from a loopback peer that forwards for nobody."""
    sent = request.headers.get("Authorization", "")
    if sent:
        right = f"Bearer {settings.METRICS_TOKEN}"
        return bool(settings.METRICS_TOKEN) and hmac.compare_digest(sent.encode(), right.encode())
    return is_from_this_machine(request._request)


class InstallationCollector(Collector):
    """Reads at every scrape; none of its queries looks at finished work."""

    @override
    def collect(self) -> Iterable[Metric]:
        yield from _notifications()
        yield from _batches()
        yield from _totals()
        workers = GaugeMetricFamily(
            "pushsvc_worker_processes", "Worker processes seen lately.", labels=["queue"]
        )
        for queue in _QUEUES:
            workers.add_metric([queue], live_processes(queue))
        yield workers


def _notifications() -> Iterator[Metric]:
    open_ones = GaugeMetricFamily(
        "pushsvc_notifications", "Notifications that are not finished.", labels=["state"]
    )
    counts = {"due": 0, "processing": 0}
    lateness = 0.0
    for status, count, age in sql.rows(_NOTIFICATIONS, {}):
        counts["due" if status == "pending" else status] = count
        lateness = age if status == "pending" else lateness
    counts["scheduled"] = sql.rows(_SCHEDULED, {})[0][0]
    for state, count in counts.items():
        open_ones.add_metric([state], count)
    yield open_ones
    yield GaugeMetricFamily(
        "pushsvc_notification_start_lateness_seconds",
        "How long the oldest due notification has waited for its start.",
        value=lateness,
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
    found = {(row[0], row[1]): (row[2], row[3]) for row in sql.rows(_BATCHES, {})}
    for platform in _PLATFORMS:
        for status in ("ready", "leased", "parked"):
            counts.add_metric([platform, status], found.get((platform, status), (0, 0.0))[0])
        ages.add_metric([platform], max(0.0, found.get((platform, "ready"), (0, 0.0))[1]))
    yield counts
    yield ages


def _totals() -> Iterator[Metric]:
    sums = sql.rows(_CHANNEL_TOTALS, {})[0]
    for name, total in zip(_TOTALS, sums, strict=False):
        meaning = f"All channels' {name.replace('_', ' ')}."
        yield CounterMetricFamily(f"pushsvc_{name}", meaning, value=total)
    subscribers = GaugeMetricFamily(
        "pushsvc_subscribers", "Active subscriptions.", labels=["platform"]
    )
    for platform, total in zip(_PLATFORMS, sums[len(_TOTALS) :], strict=True):
        subscribers.add_metric([platform], total)
    yield subscribers

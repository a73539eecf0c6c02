"""What processes count reaches /metrics once, whatever Redis does, under a bounded number of
names."""

import select
import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import Resolver404, get_resolver

from channels_app.models import Channel
from notifications_app.delivery.types import (
    INTERNAL_ERROR,
    Accepted,
    Deferred,
    Gone,
    Misconfigured,
    Rejected,
)
from notifications_app.pipeline import breakers, metering
from notifications_app.pipeline.lease import Lease
from notifications_app.pipeline.transitions import UNSUBSCRIBED, bounce
from notifications_app.reporting.attention import attention
from pushsvc.common import metrics
from pushsvc.common.endpoints import service_of
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store import metric_reports, sql
from pushsvc.common.store.metric_reports import Reporter
from pushsvc.common.store.redis_client import redis_client
from pushsvc.ops.doctor import database
from pushsvc.web.measuring import MeasuringMiddleware
from tests.admin.notifications.dashboards import everything_lives
from tests.factories import make_channel
from tests.pipeline.support import WANTED_AT, other_session
from tests.pipeline.test_transitions import judged, recipient
from tests.scrape import scrape

MANY = 10_000
REFUSED = metrics.REQUESTS_REFUSED


@pytest.fixture(autouse=True)
def _nothing_was_counted():
    redis_client().flushdb()
    metrics.take()


class Relay(threading.Thread):
    """Passes on what Redis and its client say. While it `swallows`, it ends a connection instead
    of passing on an answer."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self._address = address
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.swallows = False
        self.start()

    def run(self):
        while True:
            client, _ = self._listening.accept()
            with client, socket.create_connection(self._address) as server:
                self._relay(client, server)

    def _relay(self, client, server):
        while True:
            for sender in select.select([client, server], [], [])[0]:
                data = sender.recv(65_536)
                if not data or (sender is server and self.swallows):
                    return
                (client if sender is server else server).sendall(data)


@pytest.fixture
def relay(settings):
    """Between this process and its Redis."""
    url = urlsplit(settings.REDIS_URL)
    relay = Relay((url.hostname, url.port))
    netloc = f"{url.username or ''}:{url.password or ''}@127.0.0.1:{relay.port}"
    settings.REDIS_URL = url._replace(netloc=netloc).geturl()
    return relay


@pytest.fixture
def without_redis(settings):
    at_home = settings.REDIS_URL
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        settings.REDIS_URL = f"redis://127.0.0.1:{unused.getsockname()[1]}/0"
        yield lambda: setattr(settings, "REDIS_URL", at_home)


def counted():
    return sum(metric_reports.read().sums.values())


def test_a_report_whose_answer_is_lost_is_counted_once(relay):
    reporter = Reporter("worker")
    REFUSED.add(1, "busy")
    assert reporter.report()

    relay.swallows = True
    REFUSED.add(2, "busy")
    assert not reporter.report()
    relay.swallows = False
    assert counted() == 3  # Redis took it

    REFUSED.add(4, "busy")
    reporter.report_rest()
    assert counted() == 7


def test_what_is_counted_while_redis_is_away_is_reported_later(without_redis):
    reporter = Reporter("web")
    for _ in range(3):
        REFUSED.add(1, "busy")
        assert not reporter.report()

    without_redis()
    reporter.report_rest()

    assert counted() == 3


def test_sums_begin_again_when_redis_has_lost_its_memory():
    reporter = Reporter("web")
    REFUSED.add(5, "busy")
    assert reporter.report()

    redis_client().flushdb()
    REFUSED.add(1, "busy")

    assert reporter.report()
    assert counted() == 1


def test_processes_add_up_and_are_counted_by_kind():
    for kind in ("web", "worker", "worker"):
        REFUSED.add(1, "busy")
        assert Reporter(kind).report()

    assert counted() == 3
    assert metric_reports.read().processes == {"web": 1, "worker": 2}


def test_a_fork_does_not_report_what_its_parent_counted():
    REFUSED.add(1, "busy")
    read, write = socket.socketpair()
    with read, write:
        if not (child := metrics.os.fork()):
            write.sendall(str(len(metrics.take())).encode())
            metrics.os._exit(0)
        metrics.os.waitpid(child, 0)
        assert read.recv(10) == b"0"
    assert sum(metrics.take().values()) == 1


# --- how they look in /metrics --------------------------------------------------------------------


@pytest.mark.django_db
def test_a_histogram_has_each_bucket_with_those_below_it():
    metrics.FLUSH_SIZE.observe_all([1, 2, 3, 250, 10_000, -1], "web")
    assert Reporter("worker").report()

    found = scrape()

    buckets = found["pushsvc_flush_outcomes_bucket"]
    of_web = {bound: number for (bound, platform), number in buckets.items() if platform == "web"}
    assert of_web == {
        "1.0": 2, "3.0": 4, "10.0": 4, "30.0": 4, "100.0": 4, "200.0": 4, "300.0": 5, "+Inf": 6
    }  # fmt: skip
    assert found["pushsvc_flush_outcomes_count"]["web",] == 6
    assert found["pushsvc_flush_outcomes_sum"]["web",] == 10_256


@pytest.mark.django_db
def test_what_another_version_counted_is_left_out():
    redis_client().hset("pushsvc:metrics:sums", "pushsvc_of_tomorrow\tx\t", 1)
    redis_client().hset("pushsvc:metrics:sums", "pushsvc_requests\tone label too few\t", 1)

    assert "pushsvc_requests_total" not in scrape()


@pytest.mark.django_db
def test_requests_are_counted_by_their_route():
    client = Client()
    for name in ("a", "b"):
        assert client.get(f"/docs/{name}").status_code == 404
    client.get("/nowhere")
    assert Reporter("web").report()

    found = scrape()

    assert found["pushsvc_requests_total"]["GET", "docs/<str:name>", "4xx"] == 2
    assert found["pushsvc_requests_total"]["GET", "none", "4xx"] == 1
    assert found["pushsvc_request_duration_seconds_count"]["docs/<str:name>",] == 2


@pytest.mark.django_db
def test_breakers_show_their_state():
    first = uuid7()
    for channel in (first, uuid7()):
        breakers.record("mozilla", channel, responded=0, outages=20)

    found = scrape()

    states = found["pushsvc_breaker_state"]
    assert [states["mozilla", each] for each in ("open", "half_open", "closed")] == [1, 0, 0]
    assert [states["apns", each] for each in ("open", "half_open", "closed")] == [0, 0, 1]
    assert found["pushsvc_channel_breakers_open"]["mozilla",] == 2

    assert found["pushsvc_channel_breakers_half_open"]["mozilla",] == 0

    end_waits()
    found = scrape()
    assert found["pushsvc_breaker_state"]["mozilla", "half_open"] == 1
    assert found["pushsvc_channel_breakers_open"]["mozilla",] == 0
    assert found["pushsvc_channel_breakers_half_open"]["mozilla",] == 2

    breakers.record("fcm_v1", uuid7(), responded=0, outages=20)  # forgets no other
    breakers.end_probe("mozilla", first, responded=20, outages=0)
    found = scrape()
    assert found["pushsvc_breaker_state"]["mozilla", "closed"] == 1
    assert found["pushsvc_channel_breakers_half_open"]["mozilla",] == 1


def end_waits():
    """Of all open breakers."""
    redis = redis_client()
    for name in redis.zrange("pushsvc:breaker:open", 0, -1):
        redis.zadd("pushsvc:breaker:open", {name: time.time() * 1_000 - 1})


@pytest.mark.django_db
@pytest.mark.usefixtures("without_redis")
def test_what_redis_knows_is_missing_while_it_is_away():
    found = scrape()

    assert found["pushsvc_redis_up"][()] == 0
    assert found["pushsvc_findings"]["redis_unavailable", "redis-is-unavailable", "error"] == 1
    known = ("worker_processes", "tick_seen", "breaker_state", "requests_total")
    assert [name for name in known if f"pushsvc_{name}" in found] == []
    assert found["pushsvc_batches"]["web", "ready"] == 0
    assert found["pushsvc_database_connections"][()] >= 1
    assert found["pushsvc_database_connections_max"][()] > 1
    assert found["pushsvc_database_writable"][()] == 1


@pytest.mark.django_db(transaction=True)
def test_a_database_that_accepts_no_writes_is_reported():
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
        try:
            found = scrape()
        finally:
            cursor.execute("SET default_transaction_read_only = off")

    assert found["pushsvc_database_writable"][()] == 0
    key = ("database_read_only", "requests-hang-or-ticks-do-not-end", "error")
    assert found["pushsvc_findings"][key] == 1


@pytest.mark.django_db
def test_findings_about_single_channels_are_left_to_their_staff():
    channel = make_channel()
    Channel.objects.update(android_enabled=True)
    everything_lives()
    assert attention(Channel.objects.all(), now=sql.now()) != []

    assert "pushsvc_findings" not in scrape()

    breakers.record("mozilla", channel.pk, responded=0, outages=50)
    assert "pushsvc_findings" not in scrape()
    breakers.record("mozilla", uuid7(), responded=0, outages=50)
    assert scrape()["pushsvc_findings"]["service_failing", "a-push-service-fails", "warning"] == 1


@pytest.mark.django_db
def test_connections_of_other_roles_are_counted():
    """An ordinary role does not see what they do."""
    sql.execute("CREATE ROLE ordinary_reader", {})
    with other_session():
        sql.execute("SET LOCAL ROLE ordinary_reader", {})
        _, roles = database.connections()
        sql.execute("RESET ROLE", {})

    assert sum(number for _, number in roles) >= 2


# --- labels ---------------------------------------------------------------------------------------


def written(outcome):
    return judged(outcome, recipient())


def flush(push_service, transitions):
    lease = Lease(1, 1, 0, 1, uuid7(), uuid7(), Platform.WEB, push_service, WANTED_AT)
    metering.flushed(lease, transitions, seconds=0.01)


@pytest.mark.parametrize(
    ("transition", "name"),
    [
        (written(Accepted()), "accepted"),
        (written(Deferred("throttled")), "deferred"),
        (written(Deferred("server_error", outage=True)), "outage"),
        (written(Rejected("bad_request")), "rejected"),
        (written(Rejected(INTERNAL_ERROR)), "internal_error"),
        (written(Gone("endpoint_gone")), "gone"),
        (written(Gone("bad_device_token", suspect=True)), "suspect"),
        (written(Misconfigured("refused")), "misconfigured"),
        (bounce(recipient(), UNSUBSCRIBED), "not_called"),
    ],
)
def test_outcomes_have_few_classes(transition, name):
    flush("mozilla", [transition])

    assert metrics.take()[f"pushsvc_outcomes\tweb\tmozilla\t{name}\t"] == 1


def test_strange_hosts_make_no_new_names(settings):
    settings.WEBPUSH_TRUSTED_ORIGINS = frozenset({"https://push.own.example:8443"})
    transition = written(Accepted())
    for service in ("fcm", "push.own.example:8443", "other"):
        flush(service, [transition])
    known = set(metrics.take())

    for number in range(MANY):
        strange = f"push{number}.example.net"
        flush(service_of(f"https://{strange}/x", settings.WEBPUSH_TRUSTED_ORIGINS), [transition])
        flush(strange, [transition])  # as a row of an earlier version may name it

    found = metrics.take()
    assert set(found) <= known
    assert found["pushsvc_outcomes\tweb\tother\taccepted\t"] == 2 * MANY


def test_strange_paths_and_methods_make_no_new_names():
    def resolve(request):
        with suppress(Resolver404):
            request.resolver_match = get_resolver().resolve(request.path_info)
        return HttpResponse(status=404)

    answer = MeasuringMiddleware(resolve)
    requests = RequestFactory()
    for number in range(MANY):
        answer(requests.generic(f"GET{number}", f"/{number}/x{number}"))
        answer(requests.get(f"/docs/{number}"))
        answer(requests.get(f"/admin/{number}/x{number}"))

    found = metrics.take()
    assert {field.split("\t")[1] for field in found} == {"none", "docs/<str:name>", "admin/"}
    methods = {field.split("\t")[2] for field in found if field.startswith("pushsvc_requests\t")}
    assert methods == {"other", "GET"}
    assert len(found) < 50


@pytest.mark.django_db
def test_a_scrape_is_small_after_requests_to_every_route_in_every_way():
    """docs/limits.md bounds an answer, and a report is one round trip."""
    routes = [f"{name}/<id:notification_id>/{name}" for name in map(str, range(100))]
    for route in routes:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "other"):
            for status in ("2xx", "4xx"):
                metrics.REQUESTS.add(1, route, method, status)
        metrics.REQUEST_SECONDS.observe_all(metrics.REQUEST_SECONDS.bounds, route)
    assert Reporter("web").report()

    assert len(get_resolver().url_patterns) < len(routes)
    size = len(Client().get("/metrics").content)
    assert size < 256 * 1024, size

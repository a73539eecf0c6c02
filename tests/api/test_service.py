"""Health, metrics and public pages."""

import codecs
import json
import re
import socket
from contextlib import closing
from uuid import uuid4

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from channels_app.counters import counter_add
from notifications_app.models import Batch, Notification
from notifications_app.pipeline import planning
from notifications_app.sends.services import notification_pause
from tests import factories
from tests.api.support import code, owner_of
from tests.factories import browser, make_channel

pytestmark = pytest.mark.django_db

FROM_AFAR = "203.0.113.5"
STATES = ("due", "paused", "processing", "scheduled")


@pytest.fixture
def alice():
    return owner_of(make_channel())


def test_liveness_asks_no_server(django_assert_num_queries):
    with django_assert_num_queries(0):
        response = Client().get("/healthz")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_the_service_is_ready_with_database_migrations_and_broker():
    response = Client().get("/readyz")

    assert (response.status_code, response.json()) == (200, {"status": "ready"})


def missing(response):
    assert code(response, 503) == "not_ready"
    assert int(response.headers["Retry-After"]) > 0
    return response.json()["detail"]


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_readiness_names_an_unreachable_broker(settings, scheme):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        settings.CELERY_BROKER_URL = f"{scheme}://127.0.0.1:{unused.getsockname()[1]}//"

        assert missing(Client().get("/readyz")) == "Missing: broker."


def test_readiness_names_a_broker_that_hangs(settings):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"

        assert missing(Client().get("/readyz")) == "Missing: broker."


def test_readiness_names_a_missing_migration():
    newest = MigrationLoader(connection).graph.leaf_nodes("notifications_app")[0]
    MigrationRecorder(connection).record_unapplied(*newest)

    assert missing(Client().get("/readyz")) == "Missing: migrations."


def metrics(**extra):
    response = Client().get("/metrics", **extra)
    assert response.status_code == 200
    lines = response.content.decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


@pytest.mark.django_db(transaction=True)  # what is due depends on the time of a transaction
def test_metrics_count_waiting_work_and_outcomes(alice):
    before = metrics()
    counter_add(alice.channel.id, web_subscribers=3, delivered=5, bounced=1)
    alice.send({"body": "now"})
    alice.send({"body": "later", "scheduled_at": "2199-01-01T00:00:00Z"})

    after = metrics()

    # Others may open and close connections meanwhile.
    ours = [name for name in after if not name.startswith("pushsvc_database_")]
    changed = {name: after[name] - before[name] for name in ours if after[name] != before[name]}
    assert changed.pop("pushsvc_notification_start_lateness_seconds", 0) >= 0
    assert changed == {
        'pushsvc_notifications{state="due"}': 1,
        'pushsvc_notifications{state="scheduled"}': 1,
        'pushsvc_subscribers{platform="web"}': 3,
        "pushsvc_delivered_total": 5,
        "pushsvc_bounced_total": 1,
    }
    assert after['pushsvc_batches{platform="ios",status="parked"}'] == 0


@pytest.mark.django_db(transaction=True)
def test_metrics_count_what_is_paused_apart_and_never_as_late(alice):
    factories.add_subscriptions(alice.channel, 1)
    waits, running = (factories.make_notification(alice.channel) for _ in range(2))
    Notification.objects.filter(pk=waits.pk).update(scheduled_at="2001-01-01T00:00:00Z")
    notification_pause(channel_id=alice.channel.id, notification_id=waits.id)
    planning.work(seconds=30)
    Batch.objects.update(due_at="2001-01-01T00:00:00Z")
    late = metrics()

    notification_pause(channel_id=alice.channel.id, notification_id=running.id)

    lateness = 'pushsvc_batch_lateness_seconds{platform="web"}'
    found = metrics()
    assert (late[lateness] > 0, found[lateness]) == (True, 0)
    assert found["pushsvc_notification_start_lateness_seconds"] == 0
    states = {state: found[f'pushsvc_notifications{{state="{state}"}}'] for state in STATES}
    assert states == {"due": 0, "paused": 2, "processing": 0, "scheduled": 0}


def test_metrics_have_the_format_of_prometheus():
    response = Client().get("/metrics")

    assert response.headers["Content-Type"].startswith("text/plain; version=")
    assert "# TYPE pushsvc_batches gauge" in response.content.decode()


@pytest.mark.parametrize(
    "extra",
    [
        {"REMOTE_ADDR": FROM_AFAR},
        {"REMOTE_ADDR": ""},
        {"headers": {"X-Forwarded-For": "127.0.0.1"}},
        {"headers": {"Forwarded": "for=127.0.0.1"}},
        {"headers": {"X-Real-IP": "127.0.0.1"}},
        {"headers": {"Authorization": "Bearer wrong"}},
        {"headers": {"Authorization": "Bearer "}},
        {"headers": {"Authorization": "right"}},
        {"REMOTE_ADDR": FROM_AFAR, "headers": {"Authorization": "Bearer right-and-more"}},
    ],
)
@pytest.mark.parametrize("token", ["", "right"])
def test_metrics_are_refused_without_the_token(settings, token, extra):
    settings.METRICS_TOKEN = token

    response = Client().get("/metrics", **extra)

    assert code(response, 401) == "metrics_denied"
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1"])
def test_metrics_are_given_to_a_loopback_peer_without_a_token(settings, peer):
    settings.METRICS_TOKEN = "right"

    assert metrics(REMOTE_ADDR=peer)


def test_metrics_are_given_to_any_peer_with_the_token(settings):
    settings.METRICS_TOKEN = "right"

    assert metrics(REMOTE_ADDR=FROM_AFAR, headers={"Authorization": "Bearer right"})


def test_the_home_page_links_to_console_and_reference():
    page = Client().get("/").content.decode()

    for link in ("/admin/", "/docs", "/openapi.json", "/docs/errors"):
        assert f'href="{link}"' in page
        assert Client().get(link).status_code in {200, 302}


def test_the_reference_loads_nothing_from_other_hosts():
    page = Client().get("/docs").content.decode()

    assert "://" not in page
    files = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert any("swagger-ui-bundle" in path for path in files)
    for path in files:
        with closing(Client().get(path)) as file:
            assert file.status_code == 200


def test_every_error_links_to_its_explanation(alice):
    response = alice.call("GET", f"/channel/{uuid4()}")
    path, _, anchor = response.json()["type"].partition("#")

    page = Client().get(path).content.decode()

    assert f'<tr id="{anchor}">' in page
    assert "<code>X-Channel-ID</code>" in page
    assert "`" not in page


TOLD = {"events": [{"token": "x", "event": "clicked"}]}
TRACING = ["baggage", "sentry-trace", "traceparent", "tracestate", "x-requested-with"]
PUBLIC = [
    "/subscribe",
    "/unsubscribe",
    "/preferences",
    "/inbox",
    "/prompt",
    "/prompt-events",
    "/events",
    "/web-push-key",
]


@pytest.mark.parametrize("path", [*PUBLIC, "/web-push-key/"])
def test_browsers_of_any_origin_may_call_the_public_endpoints(path):
    preflight = Client().options(
        path,
        headers={
            "Origin": "https://shop.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": ",".join(["content-type", "x-channel-id", *TRACING]),
        },
    )

    assert preflight.status_code == 200
    assert preflight.headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    assert "Access-Control-Allow-Credentials" not in preflight.headers
    allowed = preflight.headers["Access-Control-Allow-Headers"].split(", ")
    assert sorted(allowed) == sorted(["content-type", "x-channel-id", *TRACING])


@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
def test_a_byte_order_mark_before_a_body_is_ignored(alice, content_type):
    bodies = {"/subscribe": browser(), "/send-notification": {"body": "x"}, "/events": TOLD}
    if content_type != "application/json":
        bodies = {"/events": TOLD}
    for path, body in bodies.items():
        answer = Client().post(
            path,
            codecs.BOM_UTF8 + json.dumps(body).encode(),
            content_type=content_type,
            headers={"Authorization": f"Key {alice.key}", "X-Channel-ID": str(alice.channel.id)},
        )
        assert answer.status_code in {201, 202, 204}, answer.content


def test_browsers_of_any_origin_may_read_an_error():
    answer = Client().post("/subscribe", browser(), headers={"Origin": "https://shop.example"})

    assert answer.status_code >= 400
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_browsers_of_other_origins_may_not_call_the_owners_endpoints(alice):
    answer = alice.call("GET", f"/channel/{alice.channel.id}", Origin="https://shop.example")

    assert answer.status_code == 200
    assert "Access-Control-Allow-Origin" not in answer.headers

"""Health, metrics, pages: what operators and people look at."""

import socket
from contextlib import closing
from uuid import uuid4

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from channels_app.counters import counter_add
from tests.api.support import code, owner_of
from tests.factories import browser, make_channel

pytestmark = pytest.mark.django_db

FROM_AFAR = "203.0.113.5"


@pytest.fixture
def alice():
    return owner_of(make_channel())


def test_a_running_process_is_healthy_without_asking_a_server(django_assert_num_queries):
    with django_assert_num_queries(0):
        response = Client().get("/healthz")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_with_database_migrations_and_broker_it_is_ready():
    response = Client().get("/readyz")

    assert (response.status_code, response.json()) == (200, {"status": "ready"})


def missing(response):
    assert code(response, 503) == "not_ready"
    assert int(response.headers["Retry-After"]) > 0
    return response.json()["detail"]


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_broker_that_is_away_is_named(settings, scheme):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        settings.CELERY_BROKER_URL = f"{scheme}://127.0.0.1:{unused.getsockname()[1]}//"

        assert missing(Client().get("/readyz")) == "Missing: broker."


def test_a_broker_that_hangs_is_named(settings):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"

        assert missing(Client().get("/readyz")) == "Missing: broker."


def test_a_migration_that_was_not_applied_is_named():
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
def test_metrics_tell_what_waits_and_what_was_done(alice):
    before = metrics()
    counter_add(alice.channel.id, web_subscribers=3, delivered=5, bounced=1)
    alice.send({"body": "now"})
    alice.send({"body": "later", "scheduled_at": "2199-01-01T00:00:00Z"})

    after = metrics()

    changed = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert changed.pop("pushsvc_notification_start_lateness_seconds", 0) >= 0
    assert changed == {
        'pushsvc_notifications{state="due"}': 1,
        'pushsvc_notifications{state="scheduled"}': 1,
        'pushsvc_subscribers{platform="web"}': 3,
        "pushsvc_delivered_total": 5,
        "pushsvc_bounced_total": 1,
    }
    assert after['pushsvc_batches{platform="ios",status="parked"}'] == 0


def test_the_format_is_that_of_prometheus():
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
def test_metrics_are_refused_to_others(settings, token, extra):
    settings.METRICS_TOKEN = token

    response = Client().get("/metrics", **extra)

    assert code(response, 401) == "metrics_denied"
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1"])
def test_metrics_are_given_to_a_loopback_peer_without_a_token(settings, peer):
    settings.METRICS_TOKEN = "right"

    assert metrics(REMOTE_ADDR=peer)


def test_metrics_are_given_from_afar_with_the_token(settings):
    settings.METRICS_TOKEN = "right"

    assert metrics(REMOTE_ADDR=FROM_AFAR, headers={"Authorization": "Bearer right"})


def test_a_person_who_types_the_address_finds_console_and_reference():
    page = Client().get("/").content.decode()

    for link in ("/admin/", "/docs", "/openapi.json", "/docs/errors"):
        assert f'href="{link}"' in page
        assert Client().get(link).status_code in {200, 302}


def test_the_reference_loads_nothing_from_elsewhere():
    page = Client().get("/docs").content.decode()

    assert "://" not in page
    files = [part for part in page.split('"') if part.startswith("/static/")]
    assert files
    for path in files:
        with closing(Client().get(path)) as file:
            assert file.status_code == 200


def test_every_error_leads_to_its_explanation(alice):
    response = alice.call("GET", f"/channel/{uuid4()}")
    path, _, anchor = response.json()["type"].partition("#")

    page = Client().get(path).content.decode()

    assert f'<tr id="{anchor}">' in page
    assert "<code>X-Channel-ID</code>" in page
    assert "`" not in page


@pytest.mark.parametrize("path", ["/subscribe", "/unsubscribe", "/web-push-key", "/web-push-key/"])
def test_browsers_of_any_origin_may_call_the_public_endpoints(path):
    preflight = Client().options(
        path,
        headers={
            "Origin": "https://shop.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,x-channel-id",
        },
    )

    assert preflight.status_code == 200
    assert preflight.headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    assert "Access-Control-Allow-Credentials" not in preflight.headers
    allowed = preflight.headers["Access-Control-Allow-Headers"].split(", ")
    assert sorted(allowed) == ["content-type", "x-channel-id"]


def test_an_error_too_can_be_read_by_a_browser_of_any_origin():
    answer = Client().post("/subscribe", browser(), headers={"Origin": "https://shop.example"})

    assert answer.status_code >= 400
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_browsers_elsewhere_may_not_call_the_owners_endpoints(alice):
    answer = alice.call("GET", f"/channel/{alice.channel.id}", Origin="https://shop.example")

    assert answer.status_code == 200
    assert "Access-Control-Allow-Origin" not in answer.headers

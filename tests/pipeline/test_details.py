"""GET /notification/:id/details and GET /channel/:id/platforms, over sockets."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from channels_app.selectors import current_vapid_key
from channels_app.services import provider_credentials_store
from notifications_app.content.tracking import make_token
from notifications_app.models import Notification
from notifications_app.pipeline import plan_queue, planning
from notifications_app.sends.services import notification_cancel
from tests.api.credentials import APPLE, GOOGLE
from tests.factories import (
    add_subscriptions,
    make_key,
    make_notification,
    make_person,
    subscribe_browsers,
)
from tests.pipeline import support
from tests.pipeline.processes import running_web


class Service:
    """A running web process, and a key for the channel."""

    def __init__(self, address, channel):
        self.address = address
        self.channel = channel
        self.key = make_key(channel)

    def call(self, method, path, body=None):
        headers = {"Authorization": f"Key {self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.address}{path}", data, headers, method=method)
        with urlopen(request, timeout=60) as response:
            text = response.read()
        return json.loads(text) if text else None

    def send(self, **fields):
        return self.call("POST", "/send-notification", {"body": "Fresh bread"} | fields)

    def details(self, notification_id):
        return self.call("GET", f"/notification/{notification_id}/details")

    def platforms(self):
        return self.call("GET", f"/channel/{self.channel.id}/platforms")["platforms"]


@pytest.fixture
def service(channel, tmp_path):
    with running_web(tmp_path / "web.log") as address:
        yield Service(address, channel)


def web(recipients, delivered, bounced, *, planned=True):
    return {
        "recipient_count": recipients,
        "delivered_count": delivered,
        "bounced_count": bounced,
        "stopped_count": 0,
        "opted_out_count": 0,
        "expired_count": 0,
        "planned": planned,
    }


NOTHING = web(0, 0, 0, planned=False)


def test_the_details_of_a_scheduled_or_cancelled_notification_count_nothing(service):
    given = {"title": "Bakery", "data": {"k": "v"}, "ttl": 60, "topic": "bread"}
    sent = service.send(scheduled_at="2999-01-01T00:00:00Z", **given)
    found = service.details(sent["notification_id"])

    assert found["notification_id"] == sent["notification_id"]
    assert found["status"] == "pending"
    assert found["platforms"] == {"web": NOTHING}
    assert found["reasons"] == []
    assert found["releases"] == []
    assert found["timing"] == {
        "scheduled_at": "2999-01-01T00:00:00.000Z",
        "started_at": None,
        "deadline_at": None,
        "expires_at": None,
        "finished_at": None,
        "local_at": None,
        "quiet_hours": None,
        "zones_too_late": 0,
    }
    assert found["audience"] == {
        "kind": "channel",
        "segment_id": None,
        "category": None,
        "rule": None,
        "subscription_id": None,
        "replaces": None,
    }
    assert given.items() <= found["content"].items()
    assert found["content"]["icon"] == ""

    service.call("DELETE", f"/cancel-notification/{sent['notification_id']}")
    found = service.details(sent["notification_id"])
    assert (found["status"], found["platforms"]) == ("cancelled", {"web": NOTHING})
    assert found["timing"]["finished_at"] is not None


def test_details_are_exact_from_the_first_window_to_the_end(service, sandbox, channel, settings):
    settings.PLAN_WINDOW = 2
    (_, reader), (gone, _), (slow, _) = subscribe_browsers(sandbox, channel, 3)
    gone.behave("gone")
    slow.behave("throttled", times=1)
    sent = service.send()["notification_id"]

    plan_queue.start_due()
    lease = support.claim_plan()
    assert support.plan_window(lease)
    found = service.details(sent)
    assert found["status"] == "processing"
    assert found["platforms"] == {"web": web(2, 0, 0, planned=False)}
    assert found["timing"]["started_at"] < found["timing"]["deadline_at"]
    release = {"release_at": found["timing"]["started_at"], "platforms": ["web"]}
    assert found["releases"] == [release | {"planned": False, "recipient_count": 2}]

    planning.run_slice([lease])
    found = service.details(sent)
    assert found["platforms"] == {"web": web(3, 0, 0)}
    assert found["releases"] == [release | {"planned": True, "recipient_count": 3}]

    support.deliver()
    found = service.details(sent)
    assert (found["status"], found["platforms"]) == ("processing", {"web": web(3, 1, 1)})
    assert found["reasons"] == [{"platform": "web", "code": "endpoint_gone", "count": 1}]

    notification = Notification.objects.get(id=sent)
    support.make_due(notification)
    support.deliver()
    token = make_token(notification.id, reader.id)
    service.call("POST", "/events", {"events": [{"token": token, "event": "clicked"}]})
    found = service.details(sent)
    assert (found["status"], found["platforms"]) == ("sent", {"web": web(3, 2, 1)})
    assert found["timing"]["finished_at"] is not None
    reported = {name: found[f"{name}_count"] for name in ("received", "clicked", "dismissed")}
    assert reported == {"received": 1, "clicked": 1, "dismissed": 0}


def test_details_are_read_in_one_statement(channel):
    """Two statements would see two moments."""
    notification = make_notification(channel)
    headers = {"Authorization": f"Key {make_key(channel)}"}

    with CaptureQueriesContext(connection) as queries:
        answer = Client().get(f"/notification/{notification.id}/details", headers=headers)

    assert answer.status_code == 200
    assert sum("notifications_app_" in each["sql"] for each in queries) == 1


def test_platforms_have_subscribers_credentials_and_pauses(service, sandbox, channel):
    subscribe_browsers(sandbox, channel, 2)
    assert service.platforms() == {
        "web": {
            "enabled": True,
            "subscriber_count": 2,
            "paused": None,
            "credential": {"kind": "vapid_key", "id": current_vapid_key(channel).public_key},
        },
        "android": {"enabled": False, "subscriber_count": 0, "paused": None, "credential": None},
        "ios": {"enabled": False, "subscriber_count": 0, "paused": None, "credential": None},
    }

    provider_credentials_store(
        channel=channel, fcm_service_account=json.dumps(GOOGLE), apns_key=json.dumps(APPLE)
    )
    channel.credentials.filter(platform="ios").update(
        paused_at="2026-11-20T15:11:00.123Z",
        paused_code="forbidden",
        paused_detail="Revoked",
        retry_at="2026-11-20T15:12:00.123Z",
    )
    found = service.platforms()
    assert found["android"]["enabled"]
    assert found["android"]["credential"] == {
        "kind": "fcm_service_account",
        "id": GOOGLE["project_id"],
    }
    assert found["ios"]["credential"] == {"kind": "apns_key", "id": APPLE["key_id"]}
    assert found["ios"]["paused"] == {
        "code": "forbidden",
        "detail": "Revoked",
        "since": "2026-11-20T15:11:00.123Z",
        "retried_at": None,
        "retry_at": "2026-11-20T15:12:00.123Z",
    }
    channel.credentials.filter(platform="ios").update(
        retried_at="2026-11-20T15:12:01.000Z", retry_at="2026-11-20T15:17:01.000Z"
    )
    tried = service.platforms()["ios"]["paused"]
    assert (tried["retried_at"], tried["retry_at"]) == (
        "2026-11-20T15:12:01.000Z",
        "2026-11-20T15:17:01.000Z",
    )
    assert found["android"]["paused"] is None


def blocks_of(page):
    """(language, text) of every code block of the document that is a program."""
    text = (django_settings.BASE_DIR / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_docs_run(service, sandbox, channel):
    """Every code block of docs/results.md, as it is written."""
    subscribe_browsers(sandbox, channel, 1)
    sent = service.send()["notification_id"]
    support.plan()
    support.deliver()
    names = {"SERVICE": service.address, "KEY": service.key, "CHANNEL": str(channel.id)}
    environment = os.environ | names | {"NOTIFICATION": sent}
    blocks = blocks_of("results.md")
    assert [language for language, _ in blocks] == ["sh", "python"] * 2

    said = [_output(language, text, environment) for language, text in blocks]

    assert json.loads(said[0]) == service.details(sent)
    assert "web 1 delivered of 1" in said[1]
    assert json.loads(said[2])["platforms"] == service.platforms()
    assert "web 1 subscribers" in said[3]


def test_the_examples_of_statistics_run(service, sandbox, channel):
    """docs/statistics.md, every block as it is written."""
    subscribe_browsers(sandbox, channel, 1)
    names = {"SERVICE": service.address, "KEY": service.key, "CHANNEL": str(channel.id)}
    blocks = blocks_of("statistics.md")
    assert [language for language, _ in blocks] == ["sh", "python"]

    day, hours = (_output(language, text, os.environ | names) for language, text in blocks)

    assert [each["platform"] for each in json.loads(day)["outcomes"]] == ["web"]
    assert len(hours.splitlines()) == 24 * 3


def test_the_examples_of_timing_run(service, channel):
    """docs/timing.md, every block as it is written."""
    add_subscriptions(channel, 2, timezone="Asia/Tokyo")
    names = os.environ | {"SERVICE": service.address, "KEY": service.key}

    sent, dry = (_output(language, text, names) for language, text in blocks_of("timing.md"))

    found = service.details(json.loads(sent)["notification_id"])
    assert found["timing"]["local_at"] == "09:00"
    assert dry == "2999-12-24T09:00:00.000Z in 1 time zones\n"


def test_the_examples_of_changing_a_send_run(service, channel):
    """docs/sends.md, every block as it is written."""
    add_subscriptions(channel, 1)
    sent = service.send()["notification_id"]
    support.plan()
    later = service.send(scheduled_at="2099-01-01T00:00:00Z")["notification_id"]
    names = {"SERVICE": service.address, "KEY": service.key, "CHANNEL": str(channel.id)}
    of_later, of_sent = (os.environ | names | {"NOTIFICATION": each} for each in (later, sent))
    blocks = blocks_of("sends.md")

    said = []
    for language, text in blocks:
        said.append(_output(language, text, of_later if "-X PATCH" in text else of_sent))
        # The next correction would be refused while this one is being sent.
        for correction in Notification.objects.filter(root_id=sent):
            notification_cancel(channel_id=channel.id, notification_id=correction.pk)

    listed, listed_again, labeled, summed, *said = said
    assert [each["notification_id"] for each in json.loads(listed)] == [later]
    assert listed_again.startswith("2099-01-01T00:00:00.000Z ")
    assert '"name"' not in labeled
    assert labeled.count('"notification_id"') == 2
    assert summed == "0 clicks in 2 notifications\n"
    pause, resume, both, edit, edit_paused, *said = said
    expiring, expiring_too, at_a_rate, dry_run, stop, stop_again, *said = said
    corrected, corrected_again = said
    assert json.loads(pause) == {"notification_id": sent, "paused": True}
    assert json.loads(resume) == {"notification_id": sent, "paused": False}
    assert both.splitlines() == ["paused: True", "paused: False"]
    assert json.loads(edit)["body"] == "The bakery opens at nine."
    assert edit_paused == "text: The bakery opens at ten.\n"
    assert json.loads(expiring)["status"] == "pending"
    assert expiring_too == "status: pending\n"
    limited = service.details(json.loads(at_a_rate)["notification_id"])
    assert limited["rate_per_minute"] == 5_000
    assert dry_run == "seconds: 0\n"
    assert json.loads(stop) == {"notification_id": sent, "stopped": True}
    assert stop_again == "stopped: True\n"
    corrected = service.details(json.loads(corrected)["notification_id"])
    assert corrected["audience"]["replaces"] == sent
    assert corrected_again.startswith("correction: ")
    support.tick()
    found = service.details(sent)
    assert (found["status"], found["paused"], found["stopped"]) == ("sent", False, True)
    assert found["content"]["body"] == "The bakery opens at ten."
    assert found["reasons"] == [{"platform": "web", "code": "stopped", "count": 1}]


def test_the_examples_of_content_run(service):
    """docs/content.md, every block that is a program."""
    names = os.environ | {"SERVICE": service.address, "KEY": service.key}
    blocks = blocks_of("content.md")

    by_curl, by_python = (_output(language, text, names) for language, text in blocks)

    content = service.details(json.loads(by_curl)["notification_id"])["content"]
    assert content["ios"]["interruption_level"] == "time-sensitive"
    assert content["actions"][0]["id"] == "track"
    assert by_python == "status: pending\n"


def test_the_examples_of_templates_run(service, channel):
    """docs/templates.md, every block that is a program."""
    names = {"SERVICE": service.address, "KEY": service.key, "CHANNEL": str(channel.id)}
    blocks = blocks_of("templates.md")

    by_curl, by_python = (_output(language, text, os.environ | names) for language, text in blocks)

    assert json.loads(by_curl)["name"] == "Order shipped"
    assert by_python == "Your order https://shop.example/orders/17\n"


def test_the_examples_of_schedules_run(service, channel):
    """docs/schedules.md, every block that is a program."""
    names = {"SERVICE": service.address, "KEY": service.key, "CHANNEL": str(channel.id)}
    blocks = blocks_of("schedules.md")

    by_curl, by_python = (_output(language, text, os.environ | names) for language, text in blocks)

    assert json.loads(by_curl)["next_at"]
    assert by_python == "Digest False None\n"


def test_the_examples_of_a_direct_send_run(service, channel):
    """docs/direct.md, every block as it is written."""
    add_subscriptions(channel, 2, person=make_person(channel, "user-42"))
    names = os.environ | {"SERVICE": service.address, "KEY": service.key}
    blocks = blocks_of("direct.md")
    with planning_meanwhile():
        call, program = (_output(language, text, names) for language, text in blocks)
    assert json.loads(call)["status"] == "pending"
    assert program.splitlines() == ["unknown: user-43", "user-42 reached 2", "user-43 unknown 0"]


@contextmanager
def planning_meanwhile():
    """A planner works, as beside any service."""
    is_over = threading.Event()

    def plan():
        while not is_over.is_set():
            planning.work(seconds=1)
            is_over.wait(0.1)

    with ThreadPoolExecutor(1) as pool:
        planned = pool.submit(support.closing_connection(plan))
        try:
            yield
        finally:
            is_over.set()
        planned.result()


def _output(language, text, environment):
    program = [sys.executable, "-c"] if language == "python" else ["sh", "-c"]
    if language == "sh":
        assert shutil.which("curl"), "the examples need curl"
    done = subprocess.run(
        [*program, text], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout

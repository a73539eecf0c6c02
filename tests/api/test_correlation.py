"""Ids of requests: where they come from, and where they are told."""

import json
import logging

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from notifications_app.models import Notification
from pushsvc.common import correlation
from pushsvc.common.ids import parse_uuid, uuid7
from pushsvc.common.logs import JsonFormatter, WithContext
from pushsvc.web.correlation import CorrelationMiddleware
from tests.api.support import accepted, code, owner_of
from tests.factories import make_channel

GIVEN = "proxy-7f3a.0001"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def alice(db):
    return owner_of(make_channel("Alice's shop"))


@pytest.mark.parametrize(
    ("proxies", "given", "is_taken"),
    [
        (1, GIVEN, True),
        (1, "x" * correlation.MOST_REQUEST_ID, True),
        (0, GIVEN, False),
        (1, "x" * (correlation.MOST_REQUEST_ID + 1), False),
        (1, "two words", False),
        (1, "forged\x1b", False),
        (1, "gefälscht", False),
        (1, "", False),
    ],
)
def test_only_a_trusted_proxy_chooses_a_well_formed_id(settings, proxies, given, is_taken):
    settings.TRUSTED_PROXIES = proxies

    answer = Client().get("/healthz", headers={"X-Request-ID": given})

    told = answer.headers["X-Request-ID"]
    assert told == given if is_taken else parse_uuid(told).version == 7


def test_a_problem_names_its_request(settings):
    settings.TRUSTED_PROXIES = 1

    answer = Client().get("/nowhere", headers={"X-Request-ID": GIVEN})

    assert code(answer, 404) == "not_found"
    assert answer.json()["request_id"] == answer.headers["X-Request-ID"] == GIVEN


def test_two_requests_have_different_ids():
    first, second = (Client().get("/nowhere").json()["request_id"] for _ in range(2))
    assert first != second


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (PARENT, PARENT),
        (f"cc-{TRACE}-00f067aa0ba902b7-01-more", PARENT),  # a later version may have more
        (f"{PARENT}-more", None),
        (f"ff-{TRACE}-00f067aa0ba902b7-01", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (PARENT.upper(), None),
        ("", None),
    ],
)
def test_a_traceparent_is_read_as_the_w3c_says(given, expected):
    assert correlation.parse_traceparent(given) == expected


def test_a_notification_keeps_the_correlation_ids_of_its_request(alice, settings):
    settings.TRUSTED_PROXIES = 1

    row = accepted(alice, {"body": "x"}, **{"X-Request-ID": GIVEN, "traceparent": PARENT})

    assert (row.request_id, row.traceparent) == (GIVEN, PARENT)
    assert row.correlation.fields == {"request_id": GIVEN, "trace_id": TRACE}


PUBLIC = ["/subscribe", "/unsubscribe/", "/preferences", "/events", "/web-push-key", "/c/x"]


@pytest.mark.parametrize("key", [{}, {"Authorization": "Key forged"}], ids=["no key", "a key"])
@pytest.mark.parametrize("path", [*PUBLIC, "/send-notification"])
def test_only_keyed_requests_join_a_trace(path, key):
    seen = []
    follow = CorrelationMiddleware(lambda _: seen.append(correlation.current()) or HttpResponse())

    follow(RequestFactory().post(path, headers={"traceparent": PARENT} | key))

    is_joined = bool(key) and path not in PUBLIC
    assert [each.traceparent for each in seen] == [PARENT if is_joined else None]


def test_without_a_trace_of_its_own_the_notifications_id_is_its_trace(alice):
    row = accepted(alice, {"body": "x"})

    assert row.traceparent is None
    assert row.correlation.fields["trace_id"] == row.id.hex
    assert correlation.parse_traceparent(row.correlation.traceparent) == row.correlation.traceparent


def test_an_accepted_notification_is_logged_once(
    alice, caplog, settings, django_capture_on_commit_callbacks
):
    settings.TRUSTED_PROXIES = 1
    caplog.set_level(logging.INFO)

    once = {"Idempotency-Key": "order-1", "X-Request-ID": GIVEN}
    with django_capture_on_commit_callbacks(execute=True):
        rows = {accepted(alice, {"body": "x"}, **once).id for _ in range(2)}

    (record,) = [each for each in caplog.records if each.message == "notification.accepted"]
    assert {record.notification} == rows == set(Notification.objects.values_list("id", flat=True))
    assert (record.channel, record.request_id) == (alice.channel.id, GIVEN)


def line_of(**extra):
    """What the handler of the log writes now."""
    record = logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "said", **extra})
    assert WithContext().filter(record)
    return json.loads(JsonFormatter().format(record))["fields"]


def test_lines_have_the_fields_of_their_context():
    notification_id = uuid7()
    of_row = correlation.correlation_of(notification_id, GIVEN)
    with correlation.following(of_row, batch=5):
        assert line_of() == {"request_id": GIVEN, "trace_id": notification_id.hex, "batch": 5}
        assert line_of(batch=6)["batch"] == 6  # what the event itself says
    assert line_of() == {}


def test_a_turn_forgets_the_turn_before_it():
    with correlation.following(correlation.Correlation(GIVEN, PARENT)):
        headers = correlation.current().headers
    correlation.begin_turn(headers)
    assert line_of() == {"woken_by": GIVEN}
    assert correlation.current().headers == {}  # the turn's own wakeups are nobody's request

    correlation.begin_turn({})
    assert line_of() == {}

"""POST /send-notification: the schedule."""

import pytest

from pushsvc.common.ids import uuid7
from pushsvc.common.store.redis_client import redis_client
from tests.api.support import errors

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("2031-01-02T03:04:05.678Z", "2031-01-02T03:04:05.678Z"),
        ("2031-01-02T03:04:05", "2031-01-02T03:04:05.000Z"),
        ("2031-01-02T03:04:05.678901Z", "2031-01-02T03:04:05.678Z"),
        ("2031-01-02T03:04+02:00", "2031-01-02T01:04:00.000Z"),
        ("20310102T030405Z", "2031-01-02T03:04:05.000Z"),
        ("2031-W01-4T03:04:05Z", "2031-01-02T03:04:05.000Z"),
        ("2031-002T03:04:05Z", "2031-01-02T03:04:05.000Z"),
        ("2031-01-01T24:00:00Z", "2031-01-02T00:00:00.000Z"),
        ("1999-12-31T23:59:59Z", "1999-12-31T23:59:59.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_the_scheduled_time_is_stored_and_answered(alice, given, shown):
    response = alice.send({"body": "x", "scheduled_at": given})
    assert response.json()["scheduled_at"] == shown
    read = alice.call("GET", f"/notification/{response.json()['notification_id']}").json()
    assert read["scheduled_at"] == shown


@pytest.mark.parametrize(
    "given",
    [
        "",
        "tomorrow",
        "2031-01-02",
        "2031-02-30T00:00:00Z",
        "2031-01-02T25:00:00Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "2031-01-02T03:04:05Z\n",
        "1925000000",
        1_925_000_000,
        [],
    ],
)
def test_an_invalid_time_is_refused(alice, given):
    error = "not_a_timestamp" if isinstance(given, str) else "not_a_string"
    assert errors(alice.send({"body": "x", "scheduled_at": given})) == [("scheduled_at", error)]


def test_the_time_of_acceptance_is_the_same_in_every_answer(alice):
    sent = alice.send({"body": "x"}).json()
    read = alice.call("GET", f"/notification/{sent['notification_id']}").json()
    assert read["scheduled_at"] == read["created_at"] == sent["scheduled_at"]


def waiting_wakeups():
    return redis_client().llen("plan")


@pytest.mark.django_db(transaction=True)
def test_the_planner_is_woken_up_only_for_a_send_that_is_due(alice):
    alice.send({"body": "x", "scheduled_at": "2031-01-01T00:00:00Z"})
    assert waiting_wakeups() == 0
    alice.send({"body": "x", "scheduled_at": "2001-01-01T00:00:00Z"})
    assert waiting_wakeups() == 1


@pytest.mark.django_db(transaction=True)
def test_no_wakeup_is_sent_for_a_refused_request(alice):
    alice.send({"body": "x", "segment_id": str(uuid7())})
    alice.send({"body": "x", "dry_run": True})
    assert waiting_wakeups() == 0

"""POST /send-notification with a test of variants, and POST /notification/:id/winner."""

from datetime import timedelta

import pytest
from auditlog.models import LogEntry

from notifications_app.models import Notification
from notifications_app.pipeline import deciding
from notifications_app.pipeline.timed_starts import start_timed
from tests.api.support import NOWHERE, accepted, code, errors
from tests.api.test_send_variants import LONG, SHORT

pytestmark = pytest.mark.django_db
TEST = {"share": 20, "minutes": 120, "metric": "received", "inconclusive": "hold"}
BODY = {"body": "Fresh bread", "variants": [SHORT, LONG], "test": TEST}


def started(owner, **test):
    row = accepted(owner, BODY | {"test": TEST | test})
    start_timed()
    row.refresh_from_db()
    return row


def choose(owner, row, name):
    return owner.call("POST", f"/notification/{row.id}/winner", {"variant": name})


def shown(owner, row):
    return owner.call("GET", f"/notification/{row.id}/details").json()["test"]


def test_a_test_is_stored_and_shown(alice):
    row = accepted(alice, BODY)

    assert row.test == TEST
    undecided = dict.fromkeys(["decides_at", "variant", "decided_at", "decided_by", "p_value"])
    assert shown(alice, row) == TEST | undecided | {"on_hold": False}


def test_defaults_are_filled_in(alice):
    row = accepted(alice, BODY | {"test": {"share": 1, "minutes": 15}})

    assert row.test == {"share": 1, "minutes": 15, "metric": "clicked", "inconclusive": "leader"}


def test_without_a_test_nothing_is_stored(alice):
    row = accepted(alice, BODY | {"test": None})

    assert (row.test, shown(alice, row)) == (None, None)


@pytest.mark.parametrize(
    ("change", "attr", "expected"),
    [
        ({"variants": []}, "test", "not_combinable"),
        ({"local_at": "09:00"}, "test", "not_combinable"),
        ({"external_ids": ["a"]}, "test", "not_combinable"),
        ({"test": TEST | {"share": 0}}, "test.share", "out_of_range"),
        ({"test": TEST | {"share": 100}}, "test.share", "out_of_range"),
        ({"test": TEST | {"minutes": 14}}, "test.minutes", "out_of_range"),
        ({"test": TEST | {"minutes": 4_321}}, "test.minutes", "out_of_range"),
        ({"test": {"share": 20}}, "test.minutes", "required"),
        ({"test": TEST | {"metric": "dismissed"}}, "test.metric", "not_a_choice"),
        ({"test": TEST | {"inconclusive": "none"}}, "test.inconclusive", "not_a_choice"),
        ({"test": TEST | {"winner": "short"}}, "test.winner", "unknown_field"),
        ({"test": 20}, "test", "not_an_object"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_is_no_test_is_refused(alice, change, attr, expected, dry_run):
    refused = alice.send(BODY | change | {"dry_run": dry_run})

    assert errors(refused) == [(attr, expected)]
    assert not Notification.objects.exists()


@pytest.mark.parametrize(("hours", "status"), [(1, 400), (3, 202)])
def test_a_send_may_not_expire_before_its_test_ends(alice, hours, status):
    row = accepted(alice, {"body": "x"})
    end = (row.created_at + timedelta(hours=hours)).isoformat()

    answer = alice.send(BODY | {"expires_at": end})

    assert answer.status_code == status
    if status == 400:
        assert errors(answer) == [("expires_at", "out_of_range")]


def test_no_edit_makes_a_test_end_after_the_send_expires(alice):
    times = {"scheduled_at": "2035-01-01T00:00:00Z", "expires_at": "2035-01-01T03:00:00Z"}
    row = accepted(alice, BODY | times)

    longer = alice.call("PATCH", f"/notification/{row.id}", {"test": TEST | {"minutes": 180}})

    assert errors(longer) == [("expires_at", "out_of_range")]
    shorter = alice.call("PATCH", f"/notification/{row.id}", {"test": TEST | {"minutes": 179}})
    assert shorter.status_code == 200


@pytest.mark.parametrize(
    ("is_over", "minutes", "status"),
    [(False, 80, 400), (False, 100, 200), (True, 20, 200), (True, -20, 400)],
)
def test_a_running_send_may_not_expire_before_its_test_ends(alice, is_over, minutes, status):
    """Its test had an hour and a half left when it was paused half an hour ago, or was over."""
    row = started(alice)
    paused_at = row.created_at - timedelta(minutes=30)
    decides_at = None if is_over else row.created_at + timedelta(minutes=60)
    Notification.objects.update(paused_at=paused_at, decides_at=decides_at)
    end = (row.created_at + timedelta(minutes=minutes)).isoformat()

    answer = alice.call("PATCH", f"/notification/{row.id}", {"expires_at": end})

    assert answer.status_code == status
    if status == 400:
        assert errors(answer) == [("expires_at", "out_of_range")]


def test_a_test_is_fixed_once_it_runs(alice):
    at = "2035-01-01T00:00:00Z"
    row = accepted(alice, BODY | {"scheduled_at": at})
    address = f"/notification/{row.id}"

    assert alice.call("PATCH", address, {"test": TEST | {"share": 30}}).status_code == 200
    assert shown(alice, row)["share"] == 30
    assert errors(alice.call("PATCH", address, {"variants": None})) == [("test", "not_combinable")]
    assert alice.call("PATCH", address, {"variants": None, "test": None}).status_code == 200
    assert shown(alice, row) is None
    running = started(alice)
    Notification.objects.update(paused_at=running.created_at)
    fixed = alice.call("PATCH", f"/notification/{running.id}", {"test": None})
    assert code(fixed, 409) == "not_editable"
    texts = alice.call("PATCH", f"/notification/{running.id}", {"title": "Other"})
    assert texts.status_code == 200


def test_a_winner_is_chosen_once(alice):
    row = started(alice)
    assert shown(alice, row)["decides_at"] is not None

    chosen = choose(alice, row, "long")

    assert chosen.json() == {"notification_id": str(row.id), "variant": "long"}
    found = shown(alice, row)
    assert (found["variant"], found["decided_by"], found["p_value"]) == ("long", "choice", None)
    assert (found["decides_at"], found["decided_at"] is not None) == (None, True)
    entry = LogEntry.objects.latest("id")
    assert "choice" in str(entry.changes["decision"])
    assert choose(alice, row, "long").status_code == 200
    assert code(choose(alice, row, "short"), 409) == "already_decided"
    assert shown(alice, row) == found


def test_a_test_on_hold_waits_for_a_choice(alice):
    row = started(alice)
    Notification.objects.update(decides_at=row.started_at)

    deciding.decide(row.pk)

    found = shown(alice, row)
    assert (found["on_hold"], found["variant"], found["decided_by"]) == (True, None, None)
    assert choose(alice, row, "short").status_code == 200
    assert (shown(alice, row)["on_hold"], shown(alice, row)["variant"]) == (False, "short")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "pending", "started_at": None, "decides_at": None}, "not_running"),
        ({"status": "cancelled", "decides_at": None}, "not_running"),
        ({"stopped_at": "2026-01-01T00:00:00Z"}, "not_running"),
        ({"test": None, "decides_at": None}, "no_test"),
    ],
)
def test_a_test_that_does_not_run_has_no_winner(alice, fields, expected):
    row = started(alice)
    Notification.objects.update(**fields)

    assert code(choose(alice, row, "long"), 409) == expected


def test_only_a_variant_can_win(alice, bob):
    row = started(alice)

    assert errors(choose(alice, row, "brief")) == [("variant", "not_a_choice")]
    assert choose(bob, row, "long").status_code == 404
    assert (
        alice.call("POST", f"/notification/{NOWHERE}/winner", {"variant": "long"}).status_code
        == 404
    )
    row.refresh_from_db()
    assert row.decision is None

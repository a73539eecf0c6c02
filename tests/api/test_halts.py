"""POST /notification/:id/pause, /resume and /stop.

tests/pipeline/test_pausing.py and test_stopping.py show what they do to the work.
"""

import pytest
from auditlog.models import LogEntry
from django.test import Client

from notifications_app.models import Notification
from tests.api.support import code, errors, owner_of

pytestmark = pytest.mark.django_db
LATER = "2031-01-02T03:04:05Z"
ACTS = ["pause", "resume", "stop"]


def sent(owner, status="pending"):
    answer = owner.send({"body": "Fresh bread", "scheduled_at": LATER})
    Notification.objects.filter(id=answer.json()["notification_id"]).update(status=status)
    return answer.json()["notification_id"]


def act(owner, name, notification_id, tail=""):
    return owner.call("POST", f"/notification/{notification_id}/{name}{tail}")


def details(owner, notification_id):
    found = owner.call("GET", f"/notification/{notification_id}/details").json()
    return found["status"], found["paused"], found["stopped"]


@pytest.mark.parametrize("status", ["pending", "processing"])
@pytest.mark.parametrize("tail", ["", "/"])
def test_pausing_and_resuming_may_be_repeated(alice, status, tail):
    notification_id = sent(alice, status)
    for name, paused in [("pause", True)] * 2 + [("resume", False)] * 2 + [("pause", True)]:
        answer = act(alice, name, notification_id.upper(), tail)

        assert answer.status_code == 200
        assert answer.json() == {"notification_id": notification_id, "paused": paused}
        assert details(alice, notification_id) == (status, paused, False)


def test_a_stopped_notification_without_recipients_is_cancelled(alice):
    notification_id = sent(alice, "processing")
    for _ in range(2):
        answer = act(alice, "stop", notification_id)

        assert answer.status_code == 200
        assert answer.json() == {"notification_id": notification_id, "stopped": True}
        assert details(alice, notification_id) == ("cancelled", False, True)


@pytest.mark.parametrize("status", ["sent", "failed", "cancelled"])
def test_an_ended_notification_can_be_neither_paused_nor_stopped(alice, status):
    notification_id = sent(alice, status)
    for name in ("pause", "stop"):
        response = act(alice, name, notification_id)
        assert code(response, 409) == "not_running"
        assert status in response.json()["detail"]
    assert act(alice, "resume", notification_id).json()["paused"] is False
    assert details(alice, notification_id) == (status, False, False)


def test_a_pending_notification_must_be_cancelled_instead_of_stopped(alice):
    response = act(alice, "stop", sent(alice))
    assert code(response, 409) == "not_running"
    assert "Cancel it" in response.json()["detail"]


def test_a_paused_pending_notification_can_be_cancelled(alice):
    notification_id = sent(alice)
    act(alice, "pause", notification_id)
    assert alice.call("DELETE", f"/cancel-notification/{notification_id}").status_code == 200
    assert details(alice, notification_id) == ("cancelled", False, False)


@pytest.mark.parametrize("name", ACTS)
def test_only_a_key_with_the_scope_may_pause_resume_and_stop(alice, name):
    notification_id = sent(alice, "processing")
    reader = owner_of(alice.channel, scopes=["read", "manage"])
    assert code(act(reader, name, notification_id), 403) == "missing_scope"
    errors(Client().post(f"/notification/{notification_id}/{name}"), 401)
    assert alice.call("DELETE", f"/notification/{notification_id}/{name}").status_code == 405
    assert details(alice, notification_id) == ("processing", False, False)


def test_the_documented_notification_gains_no_field(alice):
    notification_id = sent(alice, "processing")
    before = alice.call("GET", f"/notification/{notification_id}").json()
    act(alice, "pause", notification_id)
    assert alice.call("GET", f"/notification/{notification_id}").json() == before


def test_each_change_is_in_the_audit_log_once_with_the_key(alice):
    notification_id = sent(alice, "processing")
    for name in ("pause", "pause", "resume", "resume", "stop", "stop"):
        act(alice, name, notification_id)

    entries = list(LogEntry.objects.filter(object_pk=notification_id).order_by("id"))

    assert [set(entry.changes) for entry in entries] == [
        {"paused_at"},
        {"paused_at"},
        {"stopped_at", "status"},
    ]
    assert entries[2].changes["status"] == ["processing", "cancelled"]
    assert {entry.additional_data["via"] for entry in entries} == {"api"}
    assert {entry.additional_data["channel"] for entry in entries} == {str(alice.channel.id)}

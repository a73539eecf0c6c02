import pytest
from auditlog.models import LogEntry
from django.test import Client

from notifications_app.models import Notification
from notifications_app.states import NotificationStatus
from tests.api.support import NOWHERE, NOWHERE_BARE, code, errors, owner_of
from tests.pipeline.support import in_threads

pytestmark = pytest.mark.django_db
LATER = "2031-01-02T03:04:05Z"


def sent(owner, **fields):
    return owner.send({"body": "Fresh bread", "scheduled_at": LATER} | fields).json()[
        "notification_id"
    ]


def cancel(owner, notification_id, tail=""):
    return owner.call("DELETE", f"/cancel-notification/{notification_id}{tail}")


def status_of(notification_id):
    return Notification.objects.get(id=notification_id).status


def test_the_message_names_only_the_id_if_there_is_no_title(alice):
    notification_id = sent(alice)

    answer = cancel(alice, notification_id).json()

    assert answer["message"] == f"Notification {notification_id} is cancelled."


@pytest.mark.parametrize("tail", ["", "/"])
def test_a_pending_notification_is_cancelled(alice, tail):
    notification_id = sent(alice, title='Bread & "rolls" 😀')

    response = cancel(alice, notification_id, tail)

    assert response.status_code == 200
    answer = response.json()
    assert list(answer) == ["success", "message", "notificationId"]
    assert (answer["success"], answer["notificationId"]) == (True, notification_id)
    assert notification_id in answer["message"]
    assert 'Bread & "rolls" 😀' in answer["message"]
    assert "cancelled" in answer["message"]
    row = Notification.objects.get()
    assert row.status == NotificationStatus.CANCELLED
    assert row.finished_at is not None


def test_a_cancel_may_be_repeated(alice):
    notification_id = sent(alice)
    first = cancel(alice, notification_id)
    finished_at = Notification.objects.get().finished_at

    again = cancel(alice, notification_id.upper())

    assert (again.status_code, again.content) == (200, first.content)
    assert Notification.objects.get().finished_at == finished_at


@pytest.mark.parametrize("status", ["processing", "sent", "failed"])
def test_a_notification_that_was_started_cannot_be_cancelled(alice, status):
    notification_id = sent(alice)
    Notification.objects.update(status=status)

    response = cancel(alice, notification_id)

    assert code(response, 409) == "not_cancellable"
    assert status in response.json()["detail"]
    assert status_of(notification_id) == status


@pytest.mark.parametrize("name", ["x", "", NOWHERE_BARE, f"{NOWHERE}x", f"%7B{NOWHERE}%7D"])
def test_an_invalid_id_is_not_found(alice, name):
    errors(cancel(alice, name), 404)


def test_only_a_key_with_the_scope_may_cancel(alice):
    notification_id = sent(alice)
    reader = owner_of(alice.channel, scopes=["read", "manage"])
    assert code(cancel(reader, notification_id), 403) == "missing_scope"
    assert status_of(notification_id) == "pending"
    errors(Client().delete(f"/cancel-notification/{notification_id}"), 401)


def test_only_a_key_that_may_read_gets_the_title(alice):
    notification_id = sent(alice, title="Fresh rolls")
    sender = owner_of(alice.channel, scopes=["send"])
    assert "Fresh rolls" not in cancel(sender, notification_id).content.decode()
    assert "Fresh rolls" in cancel(alice, notification_id).content.decode()


def test_a_cancellation_by_a_key_is_in_the_audit_log_once(alice):
    notification_id = sent(alice)
    for _ in range(2):
        cancel(alice, notification_id)
    (entry,) = LogEntry.objects.filter(object_pk=notification_id)
    assert entry.changes == {"status": ["pending", "cancelled"]}
    assert alice.key.startswith(entry.additional_data["key"])


def test_other_methods_are_refused(alice):
    notification_id = sent(alice)
    response = alice.call("POST", f"/cancel-notification/{notification_id}")
    assert response.status_code == 405
    assert "DELETE" in response.headers["Allow"]


@pytest.mark.django_db(transaction=True)
def test_either_the_cancel_or_the_start_wins(alice):
    for _ in range(5):
        notification_id = sent(alice)

        def start(notification_id=notification_id):
            return Notification.objects.filter(id=notification_id, status="pending").update(
                status="processing"
            )

        started, first, second = in_threads(
            start,
            lambda n=notification_id: cancel(alice, n).status_code,
            lambda n=notification_id: cancel(alice, n).status_code,
        )

        expected = ("processing", 409) if started else ("cancelled", 200)
        assert (status_of(notification_id), first) == expected
        assert second == first

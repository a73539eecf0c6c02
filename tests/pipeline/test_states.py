"""States of a notification, and rows that the database refuses."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from notifications_app.errors import NotCancellable
from notifications_app.models import Batch, Delivery, Notification, Plan
from notifications_app.pipeline import counting, plan_queue
from notifications_app.sends.services import notification_cancel
from notifications_app.states import NotificationStatus, next_states
from pushsvc.common.ids import uuid7
from tests import factories
from tests.pipeline import support


def test_a_due_notification_is_processing_after_a_planner_started_it(channel):
    notification = factories.make_notification(channel, ttl=600)

    assert plan_queue.start_due() == 1

    notification.refresh_from_db()
    assert notification.status == "processing"
    assert (notification.deadline_at - notification.started_at).total_seconds() == 600


def test_ttl_zero_leaves_an_hour_for_the_one_attempt(channel):
    notification = factories.make_notification(channel, ttl=0)

    plan_queue.start_due()

    notification.refresh_from_db()
    assert (notification.deadline_at - notification.started_at).total_seconds() == 3600


def test_a_notification_without_recipients_is_sent_with_counts_of_zero(channel):
    notification = support.send(channel)

    assert support.counts(notification) == ("sent", 0, 0, 0)
    assert notification.finished_at is not None


def test_a_notification_that_every_recipient_bounced_is_sent_unless_credentials_were_refused(
    sandbox, channel
):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel)
    device.behave("error", status=400)

    notification = support.send(channel)

    assert support.counts(notification) == ("sent", 1, 0, 1)


def test_a_cancelled_notification_is_never_started(channel):
    factories.add_subscriptions(channel, 1)
    notification = factories.make_notification(channel)

    notification_cancel(channel_id=channel.id, notification_id=notification.id)
    support.plan(notification)
    support.tick()

    assert support.counts(notification) == ("cancelled", 0, 0, 0)
    assert not Plan.objects.exists()


def test_exactly_one_of_a_simultaneous_start_and_cancel_wins(channel):
    def cancel(notification):
        try:
            notification_cancel(channel_id=channel.id, notification_id=notification.id)
        except NotCancellable:
            return False
        return True

    for _ in range(20):
        notification = factories.make_notification(channel)
        started, cancelled = support.in_threads(
            plan_queue.start_due, lambda notification=notification: cancel(notification)
        )
        notification.refresh_from_db()
        assert bool(started) != cancelled
        assert notification.status == ("cancelled" if cancelled else "processing")
        assert notification.plans.count() == (0 if cancelled else 1)


@pytest.mark.parametrize("status", [s for s in NotificationStatus if not next_states(s)])
def test_a_terminal_state_never_changes(tampered_channel, status):
    notification = factories.make_notification(tampered_channel, status=status)

    support.plan()
    support.tick()
    with transaction.atomic():
        assert not counting.finish_complete({notification.id})

    notification.refresh_from_db()
    assert notification.status == status


@pytest.mark.parametrize(
    ("constraint", "values"),
    [
        ("notification_status", {"status": "lost"}),
        ("notification_running_sums", {"delivered_count": 2, "bounced_count": 2}),
        ("notification_terminal_sums", {"status": "sent", "delivered_count": 2}),
        ("notification_terminal_sums", {"status": "failed", "delivered_count": 2}),
    ],
)
def test_the_database_refuses_a_notification_that_does_not_add_up(
    tampered_channel, constraint, values
):
    notification = factories.make_notification(
        tampered_channel, status="processing", recipient_count=3
    )

    with pytest.raises(IntegrityError, match=constraint):
        Notification.objects.filter(pk=notification.pk).update(**values)


@pytest.mark.parametrize(
    ("constraint", "values"),
    [
        ("batch_status", {"status": "lost"}),
        ("batch_running_sums", {"delivered_count": 3, "bounced_count": 1}),
        (
            "batch_terminal_sums",
            {"status": "done", "finished_at": Now(), "delivered_count": 2},
        ),
        ("batch_finished_when_done", {"status": "done", "delivered_count": 3}),
        ("batch_finished_when_done", {"finished_at": Now()}),
        ("batch_bounce_sums", {"bounced_count": 1, "refused_count": 1, "suspect_count": 1}),
        ("delivered_count", {"delivered_count": F("delivered_count") - 1}),
    ],
)
def test_the_database_refuses_a_batch_that_does_not_add_up(tampered_channel, constraint, values):
    factories.add_subscriptions(tampered_channel, 3)
    factories.make_notification(tampered_channel)
    support.plan()

    with pytest.raises(IntegrityError, match=constraint):
        Batch.objects.update(**values)


def test_the_database_refuses_a_state_of_a_delivery_that_does_not_exist(tampered_channel):
    notification = factories.make_notification(tampered_channel)
    with pytest.raises(IntegrityError, match="delivery_status"):
        Delivery.objects.create(
            notification_id=notification.id, subscription_id=uuid7(), batch_id=1, status=3
        )


def test_the_database_refuses_to_plan_a_recipient_twice(tampered_channel):
    factories.add_subscriptions(tampered_channel, 1)
    notification = factories.make_notification(tampered_channel)
    support.plan()
    row = support.deliveries(notification).get()

    with pytest.raises(IntegrityError, match="delivery_pkey"):
        Delivery.objects.create(
            notification_id=notification.id, subscription_id=row.subscription_id, batch_id=1
        )

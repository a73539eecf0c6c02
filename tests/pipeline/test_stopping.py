"""Stopping a notification, when it may be paused or stopped, and changes at the same moment."""

from datetime import timedelta

import pytest

from notifications_app import tasks
from notifications_app.errors import NotRunning
from notifications_app.models import Notification, Plan
from notifications_app.pipeline import dispatch, plan_queue, planning
from notifications_app.pipeline.lease import HeldLeases
from tests import factories
from tests.pipeline import support
from tests.pipeline.halting import began, half_planned, pause, planned, record, resume, stop


def test_a_notification_stopped_with_nobody_planned_is_cancelled(channel):
    factories.add_subscriptions(channel, 3)
    notification = factories.make_notification(channel, target_platforms=["web", "android"])
    plan_queue.start_due()

    stopped = stop(notification)

    assert (stopped.status, stopped.finished_at is not None) == ("cancelled", True)
    support.plan(notification)
    support.tick()
    assert support.counts(notification) == ("cancelled", 0, 0, 0)
    assert support.open_plans() == 0


def test_stopping_during_planning_bounces_the_planned_recipients_and_plans_no_more(
    channel, settings
):
    notification, lease = half_planned(channel, settings)

    stop(notification)

    assert not support.plan_window(lease)
    support.plan()
    assert support.claim() is None
    support.tick()
    assert support.counts(notification) == ("sent", 2, 0, 2)
    assert support.codes(notification) == ["stopped"] * 2
    support.tick()
    assert support.open_plans() == 0


def test_recipients_who_have_a_stopped_notification_stay_delivered(sandbox, channel, settings):
    settings.BATCH_SIZE = 2
    factories.subscribe_browsers(sandbox, channel, 6)
    notification = factories.make_notification(channel)
    support.plan()
    dispatch.deliver_batches([support.claim()])

    stop(notification)
    support.deliver()
    support.tick()

    assert support.counts(notification) == ("sent", 6, 2, 4)
    assert support.codes(notification) == [""] * 2 + ["stopped"] * 4


def test_a_notification_stopped_after_its_last_outcome_ends_at_once(sandbox, channel, settings):
    settings.PLAN_WINDOW = 2
    factories.subscribe_browsers(sandbox, channel, 4)
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    assert support.plan_window(support.claim_plan())
    support.deliver()

    assert stop(notification).status == "sent"

    assert support.counts(notification) == ("sent", 2, 2, 0)


@pytest.mark.parametrize("state", ["deferred", "parked", "lost", "paused"])
def test_recipients_that_wait_bounce_as_stopped(state, channel):
    notification = planned(channel)
    held = HeldLeases([support.claim()])
    {
        "deferred": lambda: held.hand_back(finished_pass=True, wait=600),
        "parked": held.park,
        "lost": lambda: support.lose_lease(held.open[0].batch_id),
        "paused": lambda: (held.hand_back(finished_pass=True), pause(notification)),
    }[state]()

    stop(notification)
    support.tick()

    assert support.codes(notification) == ["stopped"] * 4
    assert support.counts(notification) == ("sent", 4, 0, 4)


def test_an_outcome_that_arrives_after_the_stop_counts(channel):
    notification = planned(channel)
    lease = support.claim()
    stop(notification)

    record(lease)
    support.tick()
    assert support.counts(notification) == ("processing", 4, 1, 0)
    HeldLeases([lease]).hand_back(finished_pass=True)
    support.tick()

    assert support.counts(notification) == ("sent", 4, 1, 3)


def test_a_stop_may_be_repeated_and_cannot_be_undone(channel):
    notification = planned(channel)
    first = stop(notification)
    assert stop(notification).stopped_at == first.stopped_at
    with pytest.raises(NotRunning, match="is stopped"):
        pause(notification)
    assert resume(notification).is_stopped
    assert support.claim() is None
    support.tick()
    assert stop(notification).status == "sent"


def test_a_notification_that_was_paused_for_a_week_is_stopped(channel):
    old, young, pending = planned(channel), planned(channel), factories.make_notification(channel)
    for each in (old, young, pending):
        pause(each)
    began(old, timedelta(days=7, seconds=1))
    began(young, timedelta(days=6, hours=23))
    began(pending, timedelta(days=700))

    tasks.housekeeping()
    support.tick()

    assert support.counts(old)[0] == "sent"
    assert Notification.objects.get(pk=old.pk).is_stopped
    for each in (young, pending):
        assert Notification.objects.get(pk=each.pk).is_paused


# When it may be halted


@pytest.mark.parametrize("status", ["sent", "failed", "cancelled"])
def test_an_ended_notification_can_be_neither_paused_nor_stopped(tampered_channel, status):
    notification = factories.make_notification(tampered_channel)
    Notification.objects.update(status=status)
    for halt in (pause, stop):
        with pytest.raises(NotRunning, match=f"is {status}"):
            halt(notification)
    assert not resume(notification).is_paused


def test_a_pending_notification_is_cancelled_and_not_stopped(channel):
    notification = factories.make_notification(channel)
    with pytest.raises(NotRunning, match="Cancel it"):
        stop(notification)


def test_a_notification_paused_while_it_starts_is_paused_before_or_after(channel):
    factories.add_subscriptions(channel, 1)
    for _ in range(30):
        notification = factories.make_notification(channel)
        support.in_threads(plan_queue.start_due, lambda n=notification: pause(n))

        notification.refresh_from_db()
        plans = Plan.objects.filter(notification=notification)
        assert notification.is_paused
        assert plans.exists() == (notification.status == "processing")
        assert not plans.unhalted().exists()
        assert support.claim_plan() is None


def test_concurrent_pauses_resumes_and_stops_do_not_deadlock_and_are_complete(channel, settings):
    settings.PLAN_WINDOW, settings.BATCH_SIZE = 5, 2
    factories.add_subscriptions(channel, 20)
    for _ in range(5):
        notification = factories.make_notification(channel, target_platforms=["web", "ios"])
        plan_queue.start_due()
        support.in_threads(
            lambda n=notification: pause(n),
            lambda n=notification: resume(n),
            lambda n=notification: pause(n),
            lambda: planning.work(seconds=1),
            support.tick,
        )
        notification.refresh_from_db()
        halted = Plan.objects.filter(notification=notification).exclude(status="done").unhalted()
        assert halted.exists() != notification.is_paused
        support.in_threads(*[lambda n=notification: stop(n)] * 3, support.tick)
    while Notification.objects.filter(status="processing").exists():
        support.tick()

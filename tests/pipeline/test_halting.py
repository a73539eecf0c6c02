"""Pausing, resuming and stopping a notification: what still happens to it, and what does not."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from notifications_app import tasks
from notifications_app.delivery.types import Accepted
from notifications_app.errors import NotRunning
from notifications_app.models import Batch, Delivery, Notification, Plan
from notifications_app.pipeline import batches, dispatch, outcomes, planning
from notifications_app.pipeline.lease import HeldLease
from notifications_app.pipeline.transitions import DueDelivery, Limits, transition_of
from notifications_app.services import notification_pause, notification_resume, notification_stop
from pushsvc.common.errors import NotFound
from pushsvc.common.store.redis_client import redis_client
from tests import factories
from tests.calls import when_called
from tests.pipeline import support

HOUR = timedelta(hours=1)


def pause(notification):
    return notification_pause(channel_id=notification.channel_id, notification_id=notification.id)


def resume(notification):
    return notification_resume(channel_id=notification.channel_id, notification_id=notification.id)


def stop(notification):
    return notification_stop(channel_id=notification.channel_id, notification_id=notification.id)


def planned(channel, subscribers=4, **fields):
    factories.add_subscriptions(channel, subscribers)
    notification = factories.make_notification(channel, **fields)
    support.plan(notification)
    return notification


def half_planned(channel, settings):
    """A notification of which two of four subscriptions are planned."""
    settings.PLAN_WINDOW = 2
    factories.add_subscriptions(channel, 4)
    notification = factories.make_notification(channel)
    planning.start_due()
    lease = planning.claim_plan()
    assert planning.plan_window(lease)
    return notification, lease


def began(notification, ago):
    """Moves the beginning of its pause so far into the past."""
    Notification.objects.filter(pk=notification.pk).update(paused_at=Now() - ago)
    Plan.objects.filter(notification=notification).update(halted_at=Now() - ago)


def record(lease):
    """Records one outcome, as a worker does. Returns whether the worker is told to make no more
    calls."""
    row = Delivery.objects.filter(batch_id=lease.batch_id, status=0).first()
    due = DueDelivery(row.subscription_id, row.attempts, None, 0)
    limits = Limits(lease.claimed_at + HOUR, 12, 3600)
    change = transition_of(
        due, Accepted(), registered_at=lease.claimed_at, now=lease.now(), limits=limits
    )
    return outcomes.record(lease, [change])


# Pause


def test_a_paused_pending_notification_does_not_start(channel):
    factories.add_subscriptions(channel, 2)
    notification = factories.make_notification(channel)

    pause(notification)
    support.tick()
    support.plan(notification)

    assert notification.status == "pending"
    assert not planning.anything_to_plan()
    assert support.waiting("plan") == 0

    resume(notification)
    assert support.waiting("plan") == 1
    support.plan(notification)
    assert notification.status == "processing"
    assert notification.paused_seconds == 0


def test_nobody_becomes_a_recipient_of_a_paused_notification(channel, settings):
    notification, lease = half_planned(channel, settings)

    pause(notification)

    assert not planning.plan_window(lease)
    planning.run_slice(lease)
    support.plan()
    assert not planning.anything_to_plan()
    assert support.deliveries(notification).count() == 2

    resume(notification)
    support.plan()
    assert support.deliveries(notification).count() == 4


def test_a_pause_waits_for_the_window_that_is_being_planned(channel, settings):
    notification, lease = half_planned(channel, settings)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert Plan.objects.leased_by(lease).locked() is not None
            paused = pool.submit(support.closing_connection(pause), notification)
            support.until(support.waiting_sessions)
            assert not paused.done()
        assert paused.result(60).is_paused


def test_no_batch_of_a_paused_notification_is_claimed_and_no_worker_is_woken_up(
    channel, other_channel
):
    notification, other = planned(channel), planned(other_channel)
    pause(notification)
    redis_client().delete("plan", "web")

    support.tick()

    assert support.waiting("web") == batches.due_counts(16)["web"] == 1
    assert support.claim().notification_id == other.id
    assert support.claim() is None

    resume(notification)
    assert support.claim().notification_id == notification.id


def test_a_batch_claimed_at_the_moment_of_the_pause_is_handed_back_uncalled(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 3)
    notification = factories.make_notification(channel)
    support.plan()
    lease = support.claim()
    pause(notification)

    dispatch.deliver_batch(lease)

    assert [device.receipts for device, _ in devices] == [[], [], []]
    assert support.batch_statuses() == {"ready"}
    resume(notification)
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 3, 3, 0)


@pytest.mark.parametrize("halt", [pause, stop])
def test_a_worker_starts_no_call_after_it_learned_of_the_pause(halt, sandbox, channel, settings):
    settings.CALLS_IN_FLIGHT, settings.UNWRITTEN_OUTCOMES, settings.FLUSH_OUTCOMES = 2, 4, 2
    devices = factories.subscribe_browsers(sandbox, channel, 30)
    notification = factories.make_notification(channel)
    support.plan()
    begun = when_called(
        [device for device, _ in devices],
        5,
        lambda: support.in_threads(lambda: halt(notification))[0],
    )

    support.deliver(notification)

    begun.result(60)
    called = sum(len(device.receipts) for device, _ in devices)
    assert 5 <= called <= 5 + settings.UNWRITTEN_OUTCOMES + settings.CALLS_IN_FLIGHT
    assert (notification.status, notification.delivered_count) == ("processing", called)
    assert support.batch_statuses() == {"ready"}
    support.tick()
    notification.refresh_from_db()
    assert notification.status == ("processing" if halt is pause else "sent")


@pytest.mark.parametrize("halt", [pause, stop])
def test_a_flush_and_a_renewal_tell_the_worker_of_a_pause(halt, channel):
    notification = planned(channel)
    lease = support.claim()
    held = HeldLease(lease)
    assert not held.renew()
    assert not record(lease)

    halt(notification)

    assert held.renew()
    assert record(lease)


def test_nobody_bounces_for_lack_of_time_during_a_pause(channel, settings):
    """Past its deadline, or parked for too long."""
    notification = planned(channel)
    HeldLease(support.claim()).park()
    pause(notification)
    Batch.objects.update(parked_at=Now() - timedelta(days=2))
    support.end_time(notification)

    support.tick()

    assert support.counts(notification) == ("processing", 4, 0, 0)


def test_a_resumed_notification_has_as_much_time_left_as_before(channel):
    notification = planned(channel, ttl=3600)
    lease = support.claim()
    HeldLease(lease).park()
    deadline = notification.deadline_at
    pause(notification)
    Batch.objects.update(parked_at=Now() - timedelta(hours=30, minutes=10))
    began(notification, timedelta(hours=30))

    resume(notification)

    notification.refresh_from_db()
    moved = notification.deadline_at - deadline
    assert timedelta(hours=30) <= moved < timedelta(hours=31)
    assert moved.total_seconds() <= notification.paused_seconds < moved.total_seconds() + 1
    (parked_for,) = Batch.objects.values_list(Now() - F("parked_at"), flat=True)
    assert timedelta(minutes=10) <= parked_for < timedelta(minutes=20)
    assert batches.overdue() == []


def test_a_batch_parked_during_a_pause_counts_as_parked_from_its_end(channel):
    notification = planned(channel)
    lease = support.claim()
    pause(notification)
    began(notification, timedelta(hours=30))
    HeldLease(lease).park()
    Batch.objects.update(parked_at=Now() - timedelta(hours=20))

    resume(notification)

    (parked_for,) = Batch.objects.values_list(Now() - F("parked_at"), flat=True)
    assert timedelta() <= parked_for < timedelta(minutes=10)


def test_a_pause_does_not_shorten_the_hour_of_a_recipients_attempts(sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    device.behave("throttled", times=1)
    notification = support.send(channel)
    pause(notification)
    began(notification, timedelta(hours=5))
    support.age(notification, hours=5)
    resume(notification)

    support.make_due(notification)
    support.deliver(notification)

    assert support.counts(notification) == ("sent", 1, 1, 0)


def test_pausing_and_resuming_may_be_repeated(channel):
    notification = planned(channel)
    first = pause(notification)
    assert pause(notification).paused_at == first.paused_at
    began(notification, HOUR)
    resumed = resume(notification)
    again = resume(notification)
    assert (again.is_paused, again.deadline_at) == (False, resumed.deadline_at)
    assert again.paused_seconds == resumed.paused_seconds


def test_a_paused_notification_ends_if_its_last_call_was_in_flight(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 1)
    notification = factories.make_notification(channel)
    support.plan()
    (device, _) = devices[0]
    paused = when_called([device], 1, lambda: support.in_threads(lambda: pause(notification))[0])

    support.deliver(notification)

    assert paused.result(60).is_paused
    assert support.counts(notification) == ("sent", 1, 1, 0)
    assert not notification.is_paused
    assert not resume(notification).is_paused


# Stop


def test_a_notification_stopped_with_nobody_planned_is_cancelled(channel):
    factories.add_subscriptions(channel, 3)
    notification = factories.make_notification(channel, target_platforms=["web", "android"])
    planning.start_due()

    stopped = stop(notification)

    assert (stopped.status, stopped.finished_at is not None) == ("cancelled", True)
    support.plan(notification)
    support.tick()
    assert support.counts(notification) == ("cancelled", 0, 0, 0)
    assert support.open_plans() == 0


def test_stopping_during_planning_bounces_the_planned_recipients_and_plans_no_more(channel, settings):
    notification, lease = half_planned(channel, settings)

    stop(notification)

    assert not planning.plan_window(lease)
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
    dispatch.deliver_batch(support.claim())

    stop(notification)
    support.deliver()
    support.tick()

    assert support.counts(notification) == ("sent", 6, 2, 4)
    assert support.codes(notification) == [""] * 2 + ["stopped"] * 4


def test_a_notification_stopped_after_its_last_outcome_ends_at_once(sandbox, channel, settings):
    settings.PLAN_WINDOW = 2
    factories.subscribe_browsers(sandbox, channel, 4)
    notification = factories.make_notification(channel)
    planning.start_due()
    assert planning.plan_window(planning.claim_plan())
    support.deliver()

    assert stop(notification).status == "sent"

    assert support.counts(notification) == ("sent", 2, 2, 0)


@pytest.mark.parametrize("state", ["deferred", "parked", "lost", "paused"])
def test_recipients_that_wait_bounce_as_stopped(state, channel):
    notification = planned(channel)
    held = HeldLease(support.claim())
    {
        "deferred": lambda: held.hand_back(finished_pass=True, wait=600),
        "parked": held.park,
        "lost": lambda: support.lose_lease(held.lease.batch_id),
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
    HeldLease(lease).hand_back(finished_pass=True)
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


# When it may not be


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


def test_another_channels_notification_is_not_found(channel, other_channel):
    theirs = planned(other_channel)
    for change in (notification_pause, notification_resume, notification_stop):
        with pytest.raises(NotFound):
            change(channel_id=channel.id, notification_id=theirs.id)
    assert not Notification.objects.get(pk=theirs.pk).is_halted
    assert set(Plan.objects.values_list("halted_at", flat=True)) == {None}


def test_a_notification_paused_while_it_starts_is_paused_before_or_after(channel):
    factories.add_subscriptions(channel, 1)
    for _ in range(30):
        notification = factories.make_notification(channel)
        support.in_threads(planning.start_due, lambda n=notification: pause(n))

        notification.refresh_from_db()
        plans = Plan.objects.filter(notification=notification)
        assert notification.is_paused
        assert plans.exists() == (notification.status == "processing")
        assert not plans.unhalted().exists()
        assert planning.claim_plan() is None


def test_concurrent_pauses_resumes_and_stops_do_not_deadlock_and_are_complete(channel, settings):
    settings.PLAN_WINDOW, settings.BATCH_SIZE = 5, 2
    factories.add_subscriptions(channel, 20)
    for _ in range(5):
        notification = factories.make_notification(channel, target_platforms=["web", "ios"])
        planning.start_due()
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

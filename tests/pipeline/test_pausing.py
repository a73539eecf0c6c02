"""Pausing and resuming a notification: what happens to its work meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from notifications_app.models import Batch, Plan
from notifications_app.pipeline import batches, dispatch, outcomes, planning
from notifications_app.pipeline.lease import HeldLeases
from notifications_app.reporting.installation import open_batches
from pushsvc.common.store.redis_client import redis_client
from tests import factories
from tests.calls import when_called
from tests.pipeline import support
from tests.pipeline.halting import HOUR, began, half_planned, pause, planned, record, resume, stop


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


def test_a_planner_that_gives_a_plan_back_makes_no_late_batch_punctual(channel, settings):
    _, lease = half_planned(channel, settings)
    Batch.objects.update(due_at=Now() - HOUR)
    Plan.objects.update(due_at=Now() - HOUR)

    planning.run_slice([lease], until=0)

    assert not Plan.objects.filter(lease_until__isnull=False).exists()
    assert open_batches()["web", "ready"].lateness >= HOUR


def test_nobody_becomes_a_recipient_of_a_paused_notification(channel, settings):
    notification, lease = half_planned(channel, settings)

    pause(notification)

    assert not support.plan_window(lease)
    planning.run_slice([lease])
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

    dispatch.deliver_batches([lease])

    assert [device.receipts for device, _ in devices] == [[], [], []]
    assert support.batch_statuses() == {"ready"}
    resume(notification)
    support.make_due(notification)
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
    assert not outcomes.record([lease], []).is_halted
    assert not record(lease)

    halt(notification)

    assert outcomes.record([lease], []).is_halted
    assert record(lease)


def test_nobody_bounces_for_lack_of_time_during_a_pause(channel, settings):
    """Past its deadline, or parked for too long."""
    notification = planned(channel)
    HeldLeases([support.claim()]).park()
    pause(notification)
    Batch.objects.update(parked_at=Now() - timedelta(days=2))
    support.end_time(notification)

    support.tick()

    assert support.counts(notification) == ("processing", 4, 0, 0)


def test_a_resumed_notification_has_as_much_time_left_as_before(channel):
    notification = planned(channel, ttl=3600)
    lease = support.claim()
    HeldLeases([lease]).park()
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
    HeldLeases([lease]).park()
    Batch.objects.update(parked_at=Now() - timedelta(hours=20))

    resume(notification)

    (parked_for,) = Batch.objects.values_list(Now() - F("parked_at"), flat=True)
    assert timedelta() <= parked_for < timedelta(minutes=10)


def test_a_resume_locks_parked_batches_in_the_order_of_their_ids(channel, settings):
    """As a request with events of both does. The last of the rows of the table is the first id."""
    settings.BATCH_SIZE = 2
    notification = planned(channel)
    HeldLeases([support.claim(), support.claim()]).park()
    pause(notification)
    first, second = Batch.objects.order_by("pk")
    Batch.objects.filter(pk=first.pk).update(parked_at=Now(), due_at=Now())

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Batch.objects.filter(pk=first.pk).locked()
            resumed = pool.submit(support.closing_connection(resume), notification)
            support.until(support.waiting_sessions)
            Batch.objects.filter(pk=second.pk).select_for_update(nowait=True).get()
        resumed.result()

    assert not Plan.objects.filter(halted_at__isnull=False).exists()


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

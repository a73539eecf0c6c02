"""Workers that die, hang, are too late or lose the database."""

import threading
from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from django.db import connection, transaction
from django.db.models.functions import Now

from notifications_app.models import Batch, Delivery
from notifications_app.pipeline import batches, dispatch, lease, outcomes, reading
from notifications_app.pipeline.lease import HeldLeases, LeaseLost
from notifications_app.pipeline.transitions import Transition
from notifications_app.states import DeliveryStatus
from pushsvc.common import metrics
from pushsvc.common.store import sql
from tests import factories
from tests.calls import standing_still
from tests.pipeline import support


class Killed(BaseException):
    """No code catches it, as none catches a SIGKILL."""


class Worker(threading.Thread):
    """Works on one claimed batch, with its own database connection."""

    def __init__(self, lease):
        super().__init__(daemon=True)
        self.lease = lease
        self.start()

    def run(self):
        try:
            dispatch.deliver_batches([self.lease])
        finally:
            connection.close()


def planned(sandbox, channel, count=1):
    devices = factories.subscribe_browsers(sandbox, channel, count)
    notification = factories.make_notification(channel)
    support.plan(notification)
    return notification, devices


def accepted(notification):
    """What a worker would write that had read the batch before."""
    return [
        Transition(
            support.due(row),
            DeliveryStatus.DELIVERED,
            attempts=1,
        )
        for row in support.deliveries(notification)
    ]


def received(devices):
    return [len(device.receipts) for device, _ in devices]


def test_a_batch_stays_with_its_worker_until_the_lease_ends(channel):
    factories.add_subscriptions(channel, 1)
    factories.make_notification(channel)
    support.plan()
    support.claim()

    assert batches.free_lost() == 0
    assert support.claim() is None


def test_another_worker_gets_a_dead_workers_batch_after_the_lease(sandbox, channel):
    notification, devices = planned(sandbox, channel, 3)
    dead = support.claim()
    Batch.objects.update(lease_until=Now() - timedelta(seconds=1))

    support.tick()
    batch = Batch.objects.get()
    assert (batch.status, batch.lease_losses, batch.lease_number) == ("ready", 1, dead.number)
    support.deliver(notification)

    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert received(devices) == [1, 1, 1]


def test_a_late_flush_after_a_lost_lease_writes_nothing(sandbox, channel):
    notification, _ = planned(sandbox, channel, 3)
    zombie = support.claim()
    late = accepted(notification)
    support.lose_lease(zombie.batch_id)
    current = support.claim()

    with pytest.raises(LeaseLost):
        outcomes.record([zombie], late)

    assert support.counts(notification) == ("processing", 3, 0, 0)
    assert not support.deliveries(notification).exclude(status=0).exists()
    outcomes.record([current], late)
    with pytest.raises(LeaseLost):  # finished meanwhile
        outcomes.record([zombie], late)
    assert support.counts(notification) == ("sent", 3, 3, 0)


def test_a_worker_that_lost_its_lease_changes_nothing_else_either(sandbox, channel):
    notification, ((_, subscription),) = planned(sandbox, channel)
    zombie = support.claim()
    support.lose_lease(zombie.batch_id)
    support.claim()
    before = Batch.objects.values().get()

    held = HeldLeases([zombie])
    with pytest.raises(LeaseLost):
        held.write_and_renew(lambda leases: outcomes.record(leases, []))
    with pytest.raises(LeaseLost):
        outcomes.begin_alone(zombie, subscription.id)
    held.hand_back_failed()
    held.hand_back(finished_pass=True)
    held.park()
    outcomes.bounce_overdue(zombie.batch_id, "expired")

    assert Batch.objects.values().get() == before
    assert support.deliveries(notification).get().solo_attempts == 0


def test_a_lease_is_renewed_while_no_outcome_arrives(sandbox, channel, monkeypatch):
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.1)
    notification, ((device, _),) = planned(sandbox, channel)
    claimed = support.claim()
    first = Batch.objects.get().lease_until

    with standing_still([device]) as called:
        worker = Worker(claimed)
        called()
        support.until(lambda: Batch.objects.get().lease_until > first)
    worker.join()

    assert support.counts(notification) == ("sent", 1, 1, 0)


def test_no_call_starts_if_less_than_its_timeout_is_left_of_the_lease(sandbox, channel, settings):
    settings.LEASE_SECONDS = 5
    settings.CALL_SECONDS = 10.0
    notification, devices = planned(sandbox, channel, 3)

    dispatch.deliver_batches([support.claim()])

    assert received(devices) == [0, 0, 0]
    assert Batch.objects.get().status == "ready"
    settings.LEASE_SECONDS = 120
    support.deliver(notification)
    assert received(devices) == [1, 1, 1]


@pytest.mark.parametrize(("lease_losses", "most"), [(0, 5), (1, 47)])
def test_no_call_starts_with_too_many_outcomes_unwritten(
    lease_losses, most, sandbox, channel, settings
):
    """After a lease loss, an eighth is too many."""
    settings.UNWRITTEN_OUTCOMES = most
    settings.FLUSH_OUTCOMES = 2
    notification, devices = planned(sandbox, channel, 30)
    Batch.objects.update(lease_losses=lease_losses)
    lease = support.claim()

    with transaction.atomic():
        sql.rows("SELECT FROM notifications_app_batch FOR UPDATE", {})  # no flush succeeds
        worker = Worker(lease)
        support.until(lambda: sum(received(devices)) >= 5)
        support.until(support.waiting_sessions)
        worker.join(0.5)
        assert sum(received(devices)) == 5
    worker.join()

    assert support.counts(notification) == ("sent", 30, 30, 0)
    assert received(devices) == [1] * 30


def test_a_batch_past_its_time_is_handed_back_with_uncalled_recipients(sandbox, channel, settings):
    settings.CALLS_IN_FLIGHT = 1
    notification, devices = planned(sandbox, channel, 6)

    with standing_still([device for device, _ in devices]) as called:
        worker = Worker(support.claim())
        called()
        settings.BATCH_SECONDS = 0.0  # the time is over before the first answer comes
    worker.join()

    batch = Batch.objects.get()
    assert (batch.status, batch.delivered_count) == ("ready", 1)
    settings.BATCH_SECONDS, settings.CALLS_IN_FLIGHT = 60.0, 6
    support.deliver(notification)
    assert received(devices) == [1] * 6
    assert support.counts(notification) == ("sent", 6, 6, 0)


def test_batches_of_unknown_hosts_are_handed_back_sooner(sandbox, channel, settings):
    settings.UNKNOWN_HOST_BATCH_SECONDS = 0.0
    devices = factories.subscribe_browsers(sandbox, channel, 2)
    type(devices[0][1]).objects.update(push_service="other")
    factories.make_notification(channel)
    support.plan()

    dispatch.deliver_batches([support.claim()])

    assert received(devices) == [0, 0]
    assert Batch.objects.get().status == "ready"


def test_a_recipient_that_crashes_workers_bounces_and_the_others_are_delivered_once(
    sandbox, channel, monkeypatch
):
    notification, devices = planned(sandbox, channel, 5)
    poison, subscription = sorted(devices, key=lambda each: each[1].id)[0]
    call = dispatch._Pass._call

    def break_worker(self, recipients):
        if any(each.destination.subscription_id == subscription.id for each in recipients):
            raise Killed
        return call(self, recipients)

    monkeypatch.setattr(dispatch._Pass, "_call", break_worker)
    deaths = 0
    while Batch.objects.get().status != "done":
        assert deaths < 10
        try:
            support.deliver()
        except Killed:
            deaths += 1
            support.lose_lease(Batch.objects.get().id)

    assert deaths == 6  # three for the batch, three for the recipient alone
    assert support.counts(notification) == ("sent", 5, 4, 1)
    assert support.delivery(notification, subscription).code == "internal_error"
    assert poison.receipts == []
    assert sorted(received(devices)) == [0, 1, 1, 1, 1]


def test_a_careful_batch_makes_one_call_at_a_time_and_resets_its_lease_losses(sandbox, channel):
    notification, devices = planned(sandbox, channel, 4)
    Batch.objects.update(lease_losses=3)
    devices[0][0].behave("throttled", times=1)

    support.deliver(notification)

    assert received(devices) == [1] * 4
    assert Batch.objects.get().lease_losses == 0
    assert not Delivery.objects.exclude(solo_attempts=0).exists()


def test_a_careful_batch_writes_each_attempt_before_its_call(sandbox, channel):
    notification, ((device, _),) = planned(sandbox, channel)
    Batch.objects.update(lease_losses=3)

    with standing_still([device]) as called:
        worker = Worker(support.claim())
        called()
        assert support.deliveries(notification).get().solo_attempts == 1
    worker.join()
    assert support.deliveries(notification).get().solo_attempts == 0


def test_each_pass_that_breaks_is_counted_and_doubles_the_wait(sandbox, channel, monkeypatch):
    planned(sandbox, channel)

    def broken(*_, **__):
        raise RuntimeError

    waits = []
    with monkeypatch.context() as breaking:
        breaking.setattr(reading, "read_destinations", broken)
        for _ in range(3):
            lease = support.claim()
            with pytest.raises(RuntimeError):
                dispatch.deliver_batches([lease])
            batch = Batch.objects.get()
            waits.append(batch.due_at - lease.claimed_at)
            Batch.objects.update(due_at=Now())

    assert batch.lease_losses == 3
    assert waits[0] >= timedelta(seconds=1)
    assert waits[2] >= timedelta(seconds=4)


def test_lease_losses_stop_counting_before_their_column_overflows(channel):
    factories.add_subscriptions(channel, 1)
    factories.make_notification(channel)
    support.plan()
    Batch.objects.update(lease_losses=100)

    lease = support.claim()
    support.lose_lease(lease.batch_id)
    assert Batch.objects.get().lease_losses == 100

    HeldLeases([support.claim()]).hand_back_failed()
    assert Batch.objects.get().lease_losses == 100


def test_a_connection_cut_during_a_pass_doubles_and_loses_nothing(sandbox, channel):
    notification, devices = planned(sandbox, channel, 120)
    for device, _ in devices:
        device.behave("slow", seconds=0.3)

    worker = Worker(support.claim())
    for calls in (1, 60, 110):
        support.until(lambda calls=calls: sum(received(devices)) >= calls)
        support.cut_other_connections()
    worker.join()

    assert received(devices) == [1] * 120
    assert support.counts(notification) == ("sent", 120, 120, 0)


def test_a_worker_that_lost_its_lease_starts_no_further_call(sandbox, channel, settings):
    settings.CALLS_IN_FLIGHT = 1
    _, devices = planned(sandbox, channel, 10)
    zombie = support.claim()
    support.lose_lease(zombie.batch_id)
    metrics.take()

    with standing_still([device for device, _ in devices], nth=2):
        worker = Worker(zombie)
        worker.join()  # it could not write the first outcome, and the second call is in flight
    support.until(calls_counted)

    assert sum(received(devices)) == 2
    support.deliver()
    assert (min(received(devices)), sum(received(devices))) == (1, 12)


def calls_counted():
    """Whether the last call of a pass has ended since calls were counted last."""
    return any("call_duration" in name for name in metrics.take())


def test_an_unreadable_vapid_key_defers_recipients_until_it_is_readable(
    sandbox, channel, settings, caplog
):
    notification, devices = planned(sandbox, channel)
    keys = settings.CREDENTIAL_KEYS
    settings.CREDENTIAL_KEYS = (Fernet.generate_key().decode(),)

    support.deliver(notification)
    assert support.codes(notification) == ["vapid_key_unreadable"]
    assert support.logged(caplog, "credentials.unreadable")

    settings.CREDENTIAL_KEYS = keys
    support.make_due(notification)
    support.deliver(notification)
    assert received(devices) == [1]
    assert support.counts(notification) == ("sent", 1, 1, 0)


def test_two_concurrent_workers_deliver_to_everybody_exactly_once(
    sandbox, channel, other_channel, settings
):
    settings.BATCH_SIZE = 7
    devices = factories.subscribe_browsers(sandbox, channel, 40) + factories.subscribe_browsers(
        sandbox, other_channel, 20
    )
    notifications = [
        factories.make_notification(channel),
        factories.make_notification(other_channel),
    ]
    support.plan()

    support.in_threads(support.deliver, support.deliver, support.deliver)

    assert received(devices) == [1] * 60
    assert [support.counts(each)[0] for each in notifications] == ["sent", "sent"]

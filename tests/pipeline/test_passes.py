"""What a pass reads, and which of its recipients it calls."""

import time
from dataclasses import replace

import pytest
from django.db import OperationalError, transaction

from notifications_app.models import Batch
from notifications_app.pipeline import dispatch, outcomes, reading
from notifications_app.pipeline.lease import HeldLeases, LeaseLost
from notifications_app.states import CAREFUL_AFTER_LEASE_LOSSES
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support
from tests.pipeline.test_leases import planned, received


def test_no_call_begins_after_a_deadline_that_passes_while_the_batch_is_served(sandbox, channel):
    notification, devices = planned(sandbox, channel, 3)
    lease = support.claim()
    work = reading.read([lease])
    over = replace(work.recipients[0].message, expires_at=time.monotonic())
    late = [recipient._replace(message=over) for recipient in work.recipients]

    dispatch._Pass(HeldLeases([lease]), replace(work, recipients=late)).run()

    assert received(devices) == [0, 0, 0]
    assert Batch.objects.get().status == "ready"
    support.end_time(notification)
    support.deliver(notification)
    assert received(devices) == [0, 0, 0]
    assert support.codes(notification) == ["expired"] * 3


def test_recipients_that_may_crash_workers_or_fail_again_come_last(channel):
    factories.add_subscriptions(channel, 3)
    notification = factories.make_notification(channel)
    support.plan()
    alone, tried, new = (
        support.deliveries(notification).filter(subscription_id=each)
        for each in support.planned_ids(notification)
    )
    alone.update(solo_attempts=1)
    tried.update(attempts=2)
    lease = support.claim()

    read = [each.delivery.subscription_id for each in reading.read([lease]).recipients]

    assert read == [each.get().subscription_id for each in (new, tried, alone)]


def test_a_read_that_fails_by_itself_is_not_repeated_until_the_lease_ends(
    sandbox, channel, monkeypatch
):
    notification, devices = planned(sandbox, channel)
    lease = support.claim()

    def time_out(*_, **__):
        with transaction.atomic():
            sql.rows("SET LOCAL statement_timeout = 1; SELECT pg_sleep(60)", {})

    with monkeypatch.context() as failing:
        failing.setattr(reading, "read_destinations", time_out)
        with pytest.raises(OperationalError):
            dispatch.deliver_batches([lease])

    batch = Batch.objects.get()
    assert (batch.status, batch.lease_losses, received(devices)) == ("ready", 1, [0])
    support.make_due(notification)
    support.deliver(notification)
    assert received(devices) == [1]


@pytest.mark.parametrize("lease_losses", [0, CAREFUL_AFTER_LEASE_LOSSES])
def test_a_recipient_past_its_deadline_does_not_keep_others_from_being_called(
    sandbox, channel, lease_losses
):
    """The batches of a pass may be of notifications with different deadlines."""
    _, devices = planned(sandbox, channel, 3)
    lease = replace(support.claim(), lease_losses=lease_losses)
    work = reading.read([lease])
    over = replace(work.recipients[0].message, expires_at=time.monotonic())
    recipients = [work.recipients[0]._replace(message=over), *work.recipients[1:]]

    dispatch._Pass(HeldLeases([lease]), replace(work, recipients=recipients)).run()

    assert sum(received(devices)) == 2
    assert (Batch.objects.get().status, Batch.objects.get().delivered_count) == ("ready", 2)


def test_a_connection_cut_while_a_batch_is_read_is_no_lease_loss(sandbox, channel, monkeypatch):
    notification, devices = planned(sandbox, channel)
    devices[0][0].behave("throttled", times=1)  # so that the batch is handed back
    read_destinations, cut = reading.read_destinations, []

    def cut_once(*arguments, **options):
        if not cut:
            cut.append("a session")
            sql.rows("SELECT pg_terminate_backend(pg_backend_pid())", {})
        return read_destinations(*arguments, **options)

    monkeypatch.setattr(reading, "read_destinations", cut_once)
    support.deliver(notification)

    batch = Batch.objects.get()
    assert (batch.status, batch.lease_losses, received(devices)) == ("ready", 0, [1])
    assert cut == ["a session"]
    support.make_due(notification)
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 1, 1, 0)


def test_a_worker_without_open_leases_writes_nothing_more(channel):
    """All its batches are done or lost, and a call in flight was answered late."""
    with pytest.raises(LeaseLost):
        _without_leases(channel).write_and_renew(lambda leases: outcomes.record(leases, []))


def test_a_lease_counts_from_before_its_renewal_was_written(channel, settings):
    held, begun = _held(channel), []

    def write(leases):
        begun.append(time.monotonic())
        return outcomes.record(leases, [])

    held.write_and_renew(write)

    assert held.until <= begun[0] + settings.LEASE_SECONDS


def _held(channel):
    factories.add_subscriptions(channel, 1)
    support.plan(factories.make_notification(channel))
    return HeldLeases([support.claim()])


def _without_leases(channel):
    held = _held(channel)
    held.split({held.open[0].batch_id})
    return held

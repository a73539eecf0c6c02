"""Flushes of one notification at once: none waits for another, every count is exact at each read,
before and after a merge, and exactly one ends the notification."""

import pytest
from django.db import connection, transaction
from django.db.models import F

from channels_app.models import ChannelCounter
from channels_app.selectors import channel_totals
from notifications_app import retention
from notifications_app.models import HourlyStat, Notification, OutcomeMinute
from notifications_app.pipeline import halting, outcomes, plan_queue, shares
from notifications_app.pipeline.transitions import Transition
from notifications_app.reporting.details import details_of
from notifications_app.states import DeliveryStatus
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support

WAITING, DELIVERED, BOUNCED = DeliveryStatus


@pytest.fixture
def leases(channel, settings):
    """Three claimed batches of one notification, with two recipients each."""
    settings.BATCH_SIZE = 2
    factories.add_subscriptions(channel, 6)
    support.plan(factories.make_notification(channel))
    return [support.claim() for _ in range(3)]


def flush(lease, *statuses, code="size_refused"):
    """Records the first recipients of the batch."""
    rows = support.due_rows(lease)
    outcomes.record([lease], [_ended(*each, code) for each in zip(rows, statuses, strict=False)])


def _ended(row, status, code):
    if status == WAITING:
        return Transition(row, status, "unavailable", due_at=sql.now(), attempts=1)
    return Transition(row, status, code if status == BOUNCED else "", attempts=1)


def pid():
    return sql.rows("SELECT pg_backend_pid()", {})[0][0]


def on_another_connection(call):
    """Runs the call on a connection that has another share of the channel's totals."""
    own = pid()

    def run():
        while (pid() - own) % 56 == 0:
            connection.close()
        call()

    support.in_threads(run)


def unmerged():
    return OutcomeMinute.objects.exclude(shard=0).count()


def make_past():
    """Moves the shares to a minute and an hour that are merged."""
    move = "UPDATE notifications_app_{0} SET {1} = {1} - interval '3 hours' WHERE shard <> 0"
    with connection.cursor() as cursor:
        cursor.execute(move.format("outcomeminute", "minute"))
        cursor.execute(move.format("hourlystat", "hour"))


def shown(channel):
    """The counts of all readers: notification, list, filter, order, details, totals, hours."""
    (notification,) = Notification.objects.all()
    own = notification.pk
    details = details_of(channel_id=channel.pk, notification_id=own)
    filtered = Notification.objects.filter(delivered_count=notification.delivered_count)
    first = Notification.objects.order_by("-bounced_count").values_list("bounced_count", flat=True)
    totals = channel_totals(channel.pk)
    assert [each.pk for each in filtered] == [own]
    assert first[0] == notification.bounced_count == totals.bounced
    (platform,) = details.platforms
    assert (platform.delivered, platform.bounced) == (totals.delivered, totals.bounced)
    assert sum(each.recipients for each in details.reasons) == notification.bounced_count
    support.assert_outcomes_exact(channel)
    deferred = sum(HourlyStat.objects.values_list("deferred", flat=True))
    apart = (notification.expired_count, notification.opted_out_count)
    counts = (notification.delivered_count, notification.bounced_count, *apart, deferred)
    return notification.status, *counts


def test_counts_are_exact_before_and_after_a_merge(channel, leases):
    flush(leases[0], DELIVERED)
    assert unmerged() == 0  # the first delivery writes its time
    flush(leases[1], DELIVERED, BOUNCED)
    flush(leases[2], BOUNCED, WAITING, code="expired")
    assert unmerged() == 3
    before = shown(channel)
    assert before == ("processing", 2, 2, 1, 0, 1)
    retention.purge()
    assert unmerged() == 3  # flushes may still write to them

    make_past()
    retention.purge()

    assert unmerged() == HourlyStat.objects.exclude(shard=0).count() == 0
    assert shown(channel) == before
    flush(leases[0], DELIVERED)
    assert shown(channel) == ("processing", 3, 2, 1, 0, 1)


def test_counts_of_an_ended_notification_stay_exact_when_its_shares_are_merged(channel, leases):
    flush(leases[0], DELIVERED, BOUNCED)
    flush(leases[1], BOUNCED, BOUNCED, code="opted_out")
    flush(leases[2], DELIVERED, DELIVERED)
    assert unmerged() == 1
    ended = shown(channel)
    assert ended == ("sent", 3, 3, 0, 2, 0)
    make_past()

    assert shares.minutes_merge(100) == 1

    assert shown(channel) == ended
    assert shares.minutes_merge(100) == 0


def test_a_flush_waits_for_no_row_of_another_flush_of_the_notification(channel, leases):
    flush(leases[0], DELIVERED)
    with transaction.atomic():
        flush(leases[1], DELIVERED)  # is not committed while the other one runs
        for rows, column in (
            (Notification.objects, "received_count"),
            (OutcomeMinute.objects, "count"),
            (HourlyStat.objects, "clicked"),
            (ChannelCounter.objects, "clicked"),
        ):
            assert rows.update(**{column: F(column)})
        on_another_connection(lambda: flush(leases[2], DELIVERED))
    assert shown(channel) == ("processing", 3, 0, 0, 0, 0)


def test_merges_and_flushes_at_once_count_everything_once(channel, settings):
    settings.BATCH_SIZE = 5
    factories.add_subscriptions(channel, 40)
    support.plan(factories.make_notification(channel))
    claimed = [support.claim() for _ in range(8)]
    seen = []

    def record(some):
        for lease in some:
            for _ in range(5):
                flush(lease, DELIVERED)

    def read():
        for _ in range(30):
            make_past()
            shares.minutes_merge(100)
            shares.hours_merge(100)
            notification, totals = Notification.objects.get(), channel_totals(channel.pk)
            seen.append((notification.delivered_count, totals.delivered))

    support.in_threads(lambda: record(claimed[:4]), lambda: record(claimed[4:]), read)

    counts = [count for count, _ in seen]
    assert counts == sorted(counts)
    assert all(total >= count for count, total in seen)  # read later
    assert shown(channel) == ("sent", 40, 0, 0, 0, 0)
    make_past()
    retention.purge()
    assert shown(channel) == ("sent", 40, 0, 0, 0, 0)


def test_of_two_last_flushes_the_one_that_commits_last_ends_the_notification(channel, leases):
    """Neither sees in its transaction what the other one wrote."""
    flush(leases[0], DELIVERED, DELIVERED)
    with transaction.atomic():
        flush(leases[1], DELIVERED, DELIVERED)
        on_another_connection(lambda: flush(leases[2], DELIVERED, DELIVERED))
        assert Notification.objects.get().status == "processing"
    assert shown(channel) == ("sent", 6, 0, 0, 0, 0)
    assert channel_totals(channel.pk).notifications_sent == 1


@pytest.mark.parametrize("way", ["planned", "stopped"])
def test_an_end_of_the_plan_that_commits_after_the_last_flush_ends_the_notification(
    channel, settings, way
):
    settings.PLAN_WINDOW = 1
    factories.add_subscriptions(channel, 1)
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    planned = support.claim_plan()
    assert support.plan_window(planned)
    lease = support.claim()
    flush(lease, WAITING)
    Notification.objects.update(first_hand_over_at=sql.now())  # the next delivery is not the first
    with transaction.atomic():
        if way == "planned":
            support.plan_window(planned)
        else:
            assert halting.stop(Notification.objects.all())
        on_another_connection(lambda: flush(lease, DELIVERED))
        assert Notification.objects.get().status == "processing"
    assert support.counts(notification) == ("sent", 1, 1, 0)


def test_a_locked_row_reads_counts_after_the_lock(channel, leases):
    """A row that is read with a lock is newer than the shares that its statement sees."""
    flush(leases[0], DELIVERED)
    flush(leases[1], DELIVERED)
    with transaction.atomic():
        locked = Notification.objects.all().locked()
        assert "delivered_count" in locked.get_deferred_fields()
        assert locked.delivered_count == 2

"""Which batch a worker claims: fairly, once, and when it is due."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from notifications_app.models import Batch
from notifications_app.pipeline import batches
from notifications_app.pipeline.breakers import UNKNOWN_HOSTS, of_channel
from tests import factories
from tests.pipeline import support
from tests.pipeline.plans import planned_for_one, quiet_hours


@pytest.fixture(autouse=True)
def _small_batches(settings):
    settings.BATCH_SIZE = 1


def planned(channel, *services):
    """A planned notification with a batch of one recipient for each of the push services."""
    for service in services:
        factories.add_subscriptions(channel, 1, push_service=service)
    notification = factories.make_notification(channel)
    support.plan()
    return notification


def test_nothing_is_claimed_if_nothing_is_planned(channel):
    assert support.claim() is None


def test_a_claim_leases_the_batch_for_the_set_time(channel, settings):
    settings.LEASE_SECONDS = 77
    planned(channel, "fcm")

    lease = support.claim()

    batch = Batch.objects.get()
    assert (batch.id, batch.status, batch.lease_number) == (lease.batch_id, "leased", lease.number)
    assert batch.claimed_at == lease.claimed_at
    assert timedelta(seconds=77) <= batch.lease_until - batch.claimed_at < timedelta(seconds=78)
    assert support.claim() is None


def test_a_small_send_is_claimed_next_behind_a_large_one_of_the_same_channel(channel):
    large = planned(channel, *["fcm"] * 5)
    for _ in range(2):
        assert support.claim().notification_id == large.id
    small = factories.make_notification(channel)
    support.plan()

    assert support.claim().notification_id == small.id


def test_a_small_send_is_claimed_next_behind_a_large_one_of_another_channel(channel, other_channel):
    large = planned(channel, *["fcm"] * 5)
    for _ in range(2):
        assert support.claim().notification_id == large.id
    small = planned(other_channel, "fcm")

    assert support.claim().notification_id == small.id


def test_channels_take_turns_however_many_notifications_one_has(channel, other_channel):
    planned(channel, "fcm", "fcm")
    factories.make_notification(channel)
    factories.make_notification(channel)
    planned(other_channel, "fcm", "fcm", "fcm")

    claimed = [support.claim().channel_id for _ in range(6)]

    assert claimed[0::2] == [claimed[0]] * 3
    assert claimed[1::2] == [claimed[1]] * 3
    assert {claimed[0], claimed[1]} == {channel.id, other_channel.id}


def test_concurrent_workers_never_lease_a_batch_twice(channel, other_channel):
    planned(channel, *["fcm"] * 24)
    planned(other_channel, *["fcm"] * 8)

    def claim_many():
        leases = [support.claim() for _ in range(33)]
        return [lease.batch_id for lease in leases if lease]

    claimed = [id_ for ids in support.in_threads(*[claim_many] * 4) for id_ in ids]

    assert sorted(claimed) == sorted(Batch.objects.values_list("id", flat=True))
    assert set(Batch.objects.values_list("lease_number", flat=True)) == {1}


def test_a_batch_is_not_claimed_before_it_is_due(channel):
    planned(channel, "fcm")
    Batch.objects.update(due_at=Now() + timedelta(hours=1))
    assert support.claim() is None

    Batch.objects.update(due_at=Now())
    assert support.claim() is not None


def test_the_batch_that_has_been_due_longest_is_claimed_first(channel):
    planned(channel, *["fcm"] * 4)
    last = Batch.objects.latest("pk")
    Batch.objects.filter(pk=last.pk).update(due_at=Now() - timedelta(seconds=1))
    Batch.objects.exclude(pk=last.pk).update(due_at=Now())
    support.stored_backwards(Batch.objects.all())

    claimed = [support.claim().batch_id for _ in range(4)]

    assert claimed == [
        last.pk,
        *Batch.objects.exclude(pk=last.pk).order_by("pk").values_list("pk", flat=True),
    ]


@pytest.mark.parametrize("is_of_channel", [False, True])
def test_batches_of_skipped_breakers_are_not_claimed(is_of_channel, channel):
    planned(channel, "fcm", "mozilla", "fcm")
    skip = [of_channel("fcm", channel.id) if is_of_channel else "fcm"]

    lease = support.claim(skip=skip)

    assert lease.push_service == "mozilla"
    assert support.claim(skip=skip) is None
    assert support.claim().push_service == "fcm"


def test_a_worker_claims_no_batch_of_another_platform(channel):
    factories.add_subscriptions(channel, 1, platform="android")
    factories.make_notification(channel, target_platforms=["android"])
    support.plan()

    assert support.claim("web") is None
    assert support.claim("android") is not None


@pytest.mark.parametrize(("processes", "share"), [(0, 1), (1, 1), (4, 1), (8, 2), (11, 2)])
def test_unknown_hosts_occupy_at_most_a_quarter_of_the_processes(channel, processes, share):
    planned(channel, *[UNKNOWN_HOSTS] * 4, "fcm")

    claimed = [support.claim(processes=processes) for _ in range(4)]

    services = [lease.push_service for lease in claimed if lease]
    assert services.count(UNKNOWN_HOSTS) == share
    assert services.count("fcm") == 1


def test_concurrent_workers_never_exceed_the_share_of_unknown_hosts(channel):
    planned(channel, *[UNKNOWN_HOSTS] * 8)

    leases = support.in_threads(*[lambda: support.claim(processes=8)] * 6)

    assert Batch.objects.filter(status="leased").count() == sum(map(bool, leases)) <= 2


def test_a_finished_batch_of_unknown_hosts_frees_its_share(channel):
    planned(channel, *[UNKNOWN_HOSTS] * 2)
    lease = support.claim(processes=4)
    assert support.claim(processes=4) is None

    Batch.objects.filter(pk=lease.batch_id).update(status="ready", due_at=Now())

    assert support.claim(processes=4) is not None


def test_a_claim_reads_the_batches_of_each_plan_once_however_many_plans_wait(channel):
    quiet_hours()
    planned_for_one(channel, 240)  # of fewer, it may as well read the whole of another index

    # Rows have a few dead versions each.
    assert support.most_rows_read(support.claim, as_if_large=True) < 10 * 240


def test_batches_that_are_claimed_along_are_read_once_however_many_wait(channel, settings):
    """Although PostgreSQL still believes that nothing waits."""
    settings.BATCH_SIZE = 1000
    quiet_hours()
    planned_for_one(channel, 200)
    lease = support.claim()

    read = support.most_rows_read(lambda: batches._companions(lease, 1, 9), as_if_large=True)

    assert read < 20
    assert Batch.objects.filter(status="leased").count() == 10


def test_workers_claim_work_although_many_plans_were_just_taken(channel):
    for _ in range(24):
        factories.make_notification(channel)
    factories.add_subscriptions(channel, 1)
    support.plan()

    leases = support.in_threads(*[support.claim] * 12)

    assert len({lease.batch_id for lease in leases if lease}) == 12

"""Small batches of a channel that a worker claims, serves and records together."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from notifications_app.models import Batch
from notifications_app.pipeline import dispatch, outcomes, plan_queue
from notifications_app.pipeline.breakers import UNKNOWN_HOSTS
from notifications_app.pipeline.lease import LeaseLost
from notifications_app.pipeline.transitions import Transition
from notifications_app.states import DeliveryStatus
from subscriptions_app.models import Subscription
from tests import factories
from tests.calls import when_called
from tests.pipeline import support
from tests.pipeline.halting import pause, resume, stop
from tests.pipeline.plans import planned_for_one, quiet_hours


def planned(channel, notifications, **fields):
    """So many notifications, each with one batch for the channel's subscriptions."""
    made = [factories.make_notification(channel, **fields) for _ in range(notifications)]
    support.plan()
    return made


def accepted(lease):
    """What a worker would write that had read the batch."""
    rows = support.due_rows(lease)
    return [Transition(row, DeliveryStatus.DELIVERED, attempts=1) for row in rows]


def ids(notifications):
    return {each.id for each in notifications}


def served(leases):
    return {lease.notification_id for lease in leases}


def test_small_batches_of_several_notifications_are_claimed_together(channel):
    factories.add_subscriptions(channel, 2)
    notifications = planned(channel, 5)

    assert served(support.claim_together()) == ids(notifications)
    assert support.claim_together() == []


def test_a_claim_has_no_more_recipients_than_a_full_batch(channel, settings):
    settings.BATCH_SIZE = 10
    factories.add_subscriptions(channel, 4)
    planned(channel, 5)

    assert [len(support.claim_together()) for _ in range(4)] == [2, 2, 1, 0]


def test_a_full_batch_is_claimed_by_itself(channel, settings):
    settings.BATCH_SIZE = 4
    factories.add_subscriptions(channel, 4)
    planned(channel, 2)

    assert [len(support.claim_together()) for _ in range(3)] == [1, 1, 0]


def test_full_batches_that_wait_longer_do_not_keep_small_ones_apart(channel, settings):
    settings.BATCH_SIZE = 4
    rows = factories.add_subscriptions(channel, 8)
    (large,) = planned(channel, 1)
    small = [factories.make_direct_notification(channel, subscriptions=rows[:1]) for _ in range(3)]
    support.plan()

    claims = [served(support.claim_together()) for _ in range(3)]

    assert claims == [{large.id}, ids(small), {large.id}]


def test_recipients_with_an_outcome_take_no_room_in_a_claim(channel, settings):
    settings.BATCH_SIZE = 4
    factories.add_subscriptions(channel, 4)
    planned(channel, 2)
    for _ in range(2):
        lease = support.claim()
        outcomes.record([lease], accepted(lease)[:2])
        support.lose_lease(lease.batch_id)
    Batch.objects.update(lease_losses=0)

    assert len(support.claim_together()) == 2


def test_a_claim_takes_batches_of_one_channel_only(channel, other_channel):
    for each in (channel, other_channel):
        factories.add_subscriptions(each, 1)
        planned(each, 2)

    claims = [{lease.channel_id for lease in support.claim_together()} for _ in range(2)]

    assert sorted(claims, key=str) == sorted([{channel.id}, {other_channel.id}], key=str)


def test_a_claim_takes_batches_of_one_push_service_only(channel):
    for service in ("fcm", "mozilla"):
        factories.add_subscriptions(channel, 1, push_service=service)
    planned(channel, 3)

    claims = [support.claim_together() for _ in range(2)]

    services = [{lease.push_service for lease in leases} for leases in claims]
    assert [len(leases) for leases in claims] == [3, 3]
    assert sorted(services, key=str) == [{"fcm"}, {"mozilla"}]


def test_batches_of_unknown_hosts_are_claimed_one_at_a_time(channel):
    """The processes that they may occupy are counted by batches."""
    factories.add_subscriptions(channel, 1, push_service=UNKNOWN_HOSTS)
    planned(channel, 3)

    assert len(support.claim_together(processes=8)) == 1


@pytest.mark.parametrize("lost", [0, 2])
def test_a_batch_after_a_lease_loss_is_claimed_by_itself(channel, lost):
    factories.add_subscriptions(channel, 1)
    planned(channel, 3)
    pk = Batch.objects.order_by("pk")[lost].pk
    Batch.objects.filter(pk=pk).update(lease_losses=1)

    claims = [{lease.batch_id for lease in support.claim_together()} for _ in range(2)]

    assert {pk} in claims
    assert sorted(map(len, claims)) == [1, 2]


def test_what_is_halted_or_not_due_is_not_claimed_along(channel):
    factories.add_subscriptions(channel, 1)
    paused, later, *others = planned(channel, 4)
    pause(paused)
    Batch.objects.filter(notification=later).update(due_at=Now() + timedelta(hours=1))

    assert served(support.claim_together()) == ids(others)


def test_another_channel_waits_for_one_claim_and_not_for_all(channel, other_channel, settings):
    settings.BATCH_SIZE = 3
    for each in (channel, other_channel):
        factories.add_subscriptions(each, 1)
    planned(channel, 9)
    planned(other_channel, 1)

    claimed = [support.claim_together()[0].channel_id for _ in range(4)]

    assert claimed.index(other_channel.id) <= 1


def test_workers_that_claim_at_once_never_get_the_same_batch(channel, settings):
    settings.BATCH_SIZE = 5
    factories.add_subscriptions(channel, 1)
    planned(channel, 40)

    def claim_all():
        claimed = []
        while leases := support.claim_together():
            claimed += [lease.batch_id for lease in leases]
        return claimed

    claimed = [id_ for ids in support.in_threads(*[claim_all] * 4) for id_ in ids]

    assert sorted(claimed) == sorted(Batch.objects.values_list("id", flat=True))


def test_a_device_gets_each_of_the_notifications_that_are_served_together(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 2)
    notifications = [factories.make_notification(channel, body=f"No. {n}") for n in range(4)]
    support.plan()

    dispatch.deliver_batches(support.claim_together())

    for device, _ in devices:
        bodies = sorted(json.loads(receipt.plaintext)["body"] for receipt in device.receipts)
        assert bodies == [f"No. {n}" for n in range(4)]
    assert {support.counts(each) for each in notifications} == {("sent", 2, 2, 0)}


def test_many_small_notifications_need_no_more_statements_than_few(sandbox, channel, settings):
    settings.FLUSH_SECONDS = 60  # so all outcomes are written together, however slow the machine is
    factories.subscribe_browsers(sandbox, channel, 1)
    needed = []
    for count in (1, 1, 30):  # the first also notes that the device takes messages
        notifications = planned(channel, count)
        with support.statements() as made:
            support.deliver()
        needed.append(len(made))
        assert {support.counts(each) for each in notifications} == {("sent", 1, 1, 0)}

    # One that claims along, and one in which a flush locks several notifications' minutes.
    assert needed[2] <= needed[1] + 2


def test_a_joint_flush_writes_nothing_for_a_lost_batch_and_everything_for_the_others(channel):
    factories.add_subscriptions(channel, 3)
    planned(channel, 3)
    leases = support.claim_together()
    lost, *kept = leases
    late = [transition for lease in leases for transition in accepted(lease)]
    support.lose_lease(lost.batch_id)
    current = support.claim()
    assert current.batch_id == lost.batch_id

    renewal = outcomes.record(leases, late)

    assert renewal.lost == {lost.batch_id}
    assert renewal.done == {lease.batch_id for lease in kept}
    by_batch = {pk: Batch.objects.get(pk=pk).delivered_count for pk in renewal.lost | renewal.done}
    assert by_batch == {lost.batch_id: 0} | {lease.batch_id: 3 for lease in kept}
    with pytest.raises(LeaseLost):
        outcomes.record(leases, late)
    outcomes.record([current], accepted(current))


def test_a_flush_reads_neither_plans_nor_batches_of_other_sends(channel):
    quiet_hours()
    planned_for_one(channel, 240)
    for _ in range(240):
        factories.make_notification(channel)
    plan_queue.start_due(240)

    def read(leases):
        taken = [each for lease in leases for each in accepted(lease)]
        return support.most_rows_read(lambda: outcomes.record(leases, taken), as_if_large=True)

    assert read(support.claim_together(most=20)) < 2 * 240
    assert read(support.claim_together(most=100)[:1]) < 9


def test_a_flush_renews_the_leases_of_batches_without_an_outcome(channel):
    factories.add_subscriptions(channel, 2)
    planned(channel, 2)
    first, second = support.claim_together()
    before = Batch.objects.get(pk=second.batch_id).lease_until

    outcomes.record([first, second], accepted(first)[:1])

    assert Batch.objects.get(pk=second.batch_id).lease_until > before
    for lease in (first, second):
        outcomes.record([lease], accepted(lease))


@pytest.mark.parametrize("halt", [pause, stop])
def test_one_that_was_halted_before_the_pass_does_not_hold_up_the_others(halt, sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    halted, *others = planned(channel, 3)
    leases = support.claim_together()
    halt(halted)

    dispatch.deliver_batches(leases)
    support.deliver()

    assert {support.counts(each) for each in others} == {("sent", 1, 1, 0)}
    assert len(device.receipts) == 2
    assert support.counts(halted) == ("processing", 1, 0, 0)
    resume(halted) if halt is pause else support.tick()
    support.make_due(halted)
    support.deliver()
    assert support.counts(halted) == ("sent", 1, int(halt is pause), int(halt is stop))


@pytest.mark.parametrize("halt", [pause, stop])
def test_a_halt_in_the_middle_of_a_pass_ends_the_calls_of_that_notification(
    halt, sandbox, channel, settings
):
    settings.CALLS_IN_FLIGHT, settings.UNWRITTEN_OUTCOMES, settings.FLUSH_OUTCOMES = 1, 2, 1
    devices = factories.subscribe_browsers(sandbox, channel, 20)
    halted, other = planned(channel, 2)
    halting = when_called(
        [device for device, _ in devices], 3, lambda: support.in_threads(lambda: halt(halted))
    )

    support.deliver()

    halting.result(60)
    assert support.counts(other) == ("sent", 20, 20, 0)
    status, _, delivered, bounced = support.counts(halted)
    assert (status, bounced) == ("processing", 0)
    assert delivered <= 3 + settings.UNWRITTEN_OUTCOMES + settings.CALLS_IN_FLIGHT
    assert sum(len(device.receipts) for device, _ in devices) == 20 + delivered


def test_one_whose_time_is_over_bounces_and_the_others_are_delivered(sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    late, *others = planned(channel, 3)
    support.end_time(late)

    support.deliver()

    assert support.codes(late) == ["expired"]
    assert {support.counts(each) for each in others} == {("sent", 1, 1, 0)}
    assert len(device.receipts) == 2


def test_a_device_that_refuses_the_category_of_one_gets_the_others(sandbox, channel):
    """It refused after all were planned."""
    ((device, subscription),) = factories.subscribe_browsers(sandbox, channel, 1)
    for key in ("offers", "news"):
        factories.make_category(channel, key, default=True)
    categories = ["offers", "news", ""]
    made = [factories.make_notification(channel, category=each) for each in categories]
    support.plan()
    Subscription.objects.filter(pk=subscription.pk).update(choices={"offers": False})

    leases = support.claim_together()
    assert len(leases) == 3
    dispatch.deliver_batches(leases)

    assert [support.codes(each) for each in made] == [["opted_out"], [""], [""]]
    assert len(device.receipts) == 2


def test_devices_that_take_one_message_and_are_gone_for_another_expire(channel):
    """So many that PostgreSQL does not happen to join their two rows in the right order."""
    factories.add_subscriptions(channel, 200)
    Subscription.objects.update(is_proven=False)
    planned(channel, 2)
    first, second = support.claim_together()
    taken = [each._replace(proves=True) for each in accepted(first)]
    gone = [
        Transition(
            row, DeliveryStatus.BOUNCED, "endpoint_gone", attempts=1, expires_as_of=first.now()
        )
        for row in support.due_rows(second)
    ]

    outcomes.record([first, second], taken + gone)

    assert not Subscription.objects.active().exists()


class Killed(BaseException):
    """No code catches it, as none catches a SIGKILL."""


def test_a_worker_killed_in_the_middle_of_a_pass_repeats_only_what_was_not_written(
    sandbox, channel, settings, monkeypatch
):
    settings.CALLS_IN_FLIGHT = settings.UNWRITTEN_OUTCOMES = settings.FLUSH_OUTCOMES = 2
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    notifications = planned(channel, 12)
    record, flushes = outcomes.record, []

    def die_later(*arguments):
        flushes.append(arguments)
        if len(flushes) == 3:
            raise Killed
        return record(*arguments)

    with monkeypatch.context() as dying:
        dying.setattr(outcomes, "record", die_later)
        with pytest.raises(Killed):
            support.deliver()
    written = sum(support.counts(each)[2] for each in notifications)
    assert 0 < written < 12
    for lost in Batch.objects.filter(status="leased"):
        support.lose_lease(lost.pk)

    support.deliver()

    assert {support.counts(each) for each in notifications} == {("sent", 1, 1, 0)}
    assert 12 <= len(device.receipts) <= 12 + settings.UNWRITTEN_OUTCOMES


def test_a_row_that_the_database_refuses_makes_only_its_own_batch_careful(
    sandbox, channel, monkeypatch
):
    """The others of the pass that have recipients left are not called one by one."""
    ((device, _),) = factories.subscribe_browsers(sandbox, channel, 1)
    device.behave("throttled", times=4)
    notifications = planned(channel, 4)
    refused = Batch.objects.order_by("pk").first()
    record = outcomes.record

    def refuse(leases, transitions):
        rows = [each for each in transitions if each.delivery.batch_id != refused.pk]
        renewal = record(leases, rows)
        is_refused = len(rows) < len(transitions)
        return replace(renewal, with_refused_rows={refused.pk}) if is_refused else renewal

    with monkeypatch.context() as refusing:
        refusing.setattr(outcomes, "record", refuse)
        dispatch.deliver_batches(support.claim_together())

    losses = dict(Batch.objects.values_list("pk", "lease_losses"))
    assert losses.pop(refused.pk) >= 3
    assert set(losses.values()) == {0}
    assert support.batch_statuses() == {"ready"}
    for each in notifications:
        support.make_due(each)
    support.deliver()
    assert {support.counts(each)[0] for each in notifications} == {"sent"}

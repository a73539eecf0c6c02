"""The turns that channels have when plans are started and claimed."""

from collections import Counter
from functools import partial

import pytest
from django.db.models.functions import Now

from notifications_app.models import Notification, Plan
from notifications_app.pipeline import plan_queue, planning
from notifications_app.pipeline.plan_queue import RoundRobin
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support
from tests.pipeline.plans import claim, noted_calls, planned, quiet_hours, recipients, started

pytestmark = pytest.mark.usefixtures("patient_transactions")


def test_new_plans_of_a_channel_are_claimed_together_up_to_a_number(channel):
    notifications = started(channel, 5)

    claims = [claim(most=3) for _ in range(3)]

    assert [len(leases) for leases in claims] == [3, 2, 0]
    assert set.union(*map(planned, claims)) == {each.id for each in notifications}


def test_new_plans_of_several_channels_are_claimed_together_as_many_of_each(channel, other_channel):
    """Those of one were all made before the other's."""
    first, second = started(channel, 5), started(other_channel, 3)

    claims = [planned(claim(most=4)) for _ in range(2)]

    assert claims == [
        {each.id for each in first[:2] + second[:2]},
        {each.id for each in first[2:] + second[2:]},
    ]


def test_a_plan_that_was_begun_is_claimed_by_itself(channel, settings):
    settings.PLAN_WINDOW, settings.PLAN_SLICE_SECONDS = 2, 0
    factories.add_subscriptions(channel, 3)
    begun, second = started(channel, 2)
    planning.run_slice(claim(most=1))
    (third,) = started(channel, 1)

    assert [planned(claim()) for _ in range(2)] == [{second.id, third.id}, {begun.id}]


def test_new_plans_and_plans_that_were_begun_have_turns(channel, other_channel, settings):
    settings.PLAN_WINDOW, settings.PLAN_SLICE_SECONDS = 2, 0
    factories.add_subscriptions(channel, 9)
    begun = started(channel, 2)
    for _ in begun:
        planning.run_slice(claim(most=1))
    new = [*started(channel, 1), *started(other_channel, 3)]
    own = RoundRobin()

    claims = [plan_queue.claim_plans(most=2, round_robin=own) for _ in range(4)]

    assert [planned(leases) <= {each.id for each in new} for leases in claims] == [
        True,
        False,
        True,
        False,
    ]
    assert list(map(len, claims)) == [2, 1, 2, 1]


def test_channels_have_turns_with_plans_that_were_begun(channel, other_channel, settings):
    settings.PLAN_WINDOW, settings.PLAN_SLICE_SECONDS = 2, 0
    for each in (channel, other_channel):
        factories.add_subscriptions(each, 9)
    notifications = [*started(channel, 4), *started(other_channel, 1)]
    for _ in notifications:
        planning.run_slice(claim(most=1))
    own = RoundRobin()

    served = []
    for _ in range(4):
        (lease,) = plan_queue.claim_plans(most=1, round_robin=own)
        served.append(lease.channel_id)
        planning.run_slice([lease])

    assert served.count(other_channel.id) == 2
    assert served[0] != served[1] != served[2] != served[3]


def test_a_channel_with_many_notifications_delays_another_s_by_one_turn(
    channel, other_channel, settings, monkeypatch
):
    """They are due before it, many more than a planner starts and claims at once."""
    settings.CLAIM_PLANS = 4
    monkeypatch.setattr(planning, "start_due", partial(plan_queue.start_due, 5))
    monkeypatch.setattr(planning, "_round_robin", RoundRobin())
    for each in (channel, other_channel):
        factories.add_subscriptions(each, 1)
    many = [factories.make_notification(channel) for _ in range(60)]
    slices = noted_calls(monkeypatch, "run_slice")
    planning.work(seconds=0.000_001)
    factories.make_notification(other_channel)
    support.plan()

    claimed = [{lease.channel_id for lease in leases} for (leases,) in slices]
    turn = next(n for n, channels in enumerate(claimed) if other_channel.id in channels)
    assert turn <= 2  # after what had been started before it
    assert len(slices) >= 60 / 4
    assert recipients(many) == [1] * 60


def test_many_large_notifications_do_not_keep_another_channel_s_from_being_started(
    channel, other_channel, settings, monkeypatch
):
    settings.CLAIM_PLANS, settings.PLAN_WINDOW, settings.PLAN_SLICE_SECONDS = 2, 1, 0
    monkeypatch.setattr(planning, "start_due", partial(plan_queue.start_due, 9))
    own = RoundRobin()
    monkeypatch.setattr(planning, "_round_robin", own)
    for each in (channel, other_channel):
        factories.add_subscriptions(each, 2)
    started(channel, 9)
    plan_queue.claim_plans(most=2, round_robin=own)
    factories.make_notification(other_channel)
    slices = noted_calls(monkeypatch, "run_slice")

    support.plan()

    claimed = [{lease.channel_id for lease in leases} for (leases,) in slices]
    assert other_channel.id in claimed[0] | claimed[1]


def test_starts_go_on_with_the_next_channels(channel, other_channel):
    third = factories.make_channel("Third")
    for each in (channel, other_channel, third):
        for _ in range(9):
            factories.make_notification(each)
    own = RoundRobin()

    for _ in range(2):
        plan_queue.start_due(2, round_robin=own)

    begun = Counter(Plan.objects.values_list("channel_id", flat=True))
    assert min(begun[each.id] for each in (channel, other_channel, third)) >= 4


def test_a_start_reads_no_more_however_many_are_due(channel, other_channel, monkeypatch):
    monkeypatch.setattr(plan_queue, "CHANNELS_AT_ONCE", 2)
    fields = {"body": "Fresh bread", "ttl": 3600, "target_platforms": ["web"]}
    Notification.objects.bulk_create(
        Notification(channel=channel, scheduled_at=Now(), **fields) for _ in range(2000)
    )
    factories.make_notification(other_channel)
    sql.execute("ANALYZE notifications_app_notification", {})

    read = support.most_rows_read(lambda: plan_queue.start_due(5), as_if_large=True)

    assert read < 200
    assert Plan.objects.filter(channel=other_channel).count() == 1


def test_a_claim_reads_each_waiting_plan_a_few_times_however_many_wait(channel):
    quiet_hours()
    for _ in range(240):
        factories.make_notification(channel)
    plan_queue.start_due(240)

    assert support.most_rows_read(lambda: claim(most=5), as_if_large=True) < 10 * 240


def test_concurrent_planners_never_claim_a_plan_twice(channel):
    started(channel, 30)

    def claim_all():
        claimed = []
        while leases := claim(most=4):
            claimed += [lease.plan_id for lease in leases]
        return claimed

    claimed = [id_ for ids in support.in_threads(*[claim_all] * 4) for id_ in ids]

    assert sorted(claimed) == sorted(Plan.objects.values_list("id", flat=True))

"""New plans that a planner plans together."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from channels_app.selectors import channel_totals
from notifications_app.models import Plan, Target
from notifications_app.pipeline import plan_queue, planning
from tests import factories, segments
from tests.pipeline import support
from tests.pipeline.halting import pause, resume, stop
from tests.pipeline.plans import claim, noted_calls, planned, recipients, started

pytestmark = pytest.mark.usefixtures("patient_transactions")


@pytest.fixture
def no_audience_is_small(settings):
    settings.PLAN_WINDOW = settings.CLAIM_PLANS - 1


def test_plans_of_several_channels_are_planned_in_one_transaction(channel, other_channel):
    """With what is counted for each channel and each hour."""
    factories.add_subscriptions(channel, 2)
    factories.add_subscriptions(other_channel, 3)
    notifications = [*started(channel, 3), *started(other_channel, 2)]

    assert planning.plan_windows(claim()) == []

    assert recipients(notifications) == [2, 2, 2, 3, 3]
    assert [channel_totals(each.id).recipients for each in (channel, other_channel)] == [6, 6]
    for each in (channel, other_channel):
        support.assert_exact(each)


def test_the_first_plan_of_each_channel_comes_before_the_second_of_any(
    channel, other_channel, no_audience_is_small
):
    """A slice may end before all are planned."""
    for each in (channel, other_channel):
        factories.add_subscriptions(each, 99)
    first, second = started(channel, 2), started(other_channel, 1)

    left = claim()
    for _ in range(2):
        left = planning.plan_windows(left)

    assert recipients([*first, *second]) == [99, 0, 99]


@pytest.mark.parametrize("kind", ["channel", "targets"])
def test_many_small_plans_need_no_more_statements_than_one(kind, channel):
    (row,) = factories.add_subscriptions(channel, 1)
    needed = []
    for count in (1, 20):
        for _ in range(count):
            if kind == "targets":
                factories.make_direct_notification(channel, subscriptions=[row])
            else:
                factories.make_notification(channel)
        plan_queue.start_due()
        with support.statements() as made:
            planning.run_slice(claim())
        needed.append(len(made))

    assert Plan.objects.filter(recipient_count=1).count() == 21
    assert needed[1] == needed[0]


def test_larger_audiences_are_left_out_of_the_statement_for_small_ones(
    channel, other_channel, monkeypatch, settings
):
    settings.PLAN_WINDOW, settings.CLAIM_PLANS = 12, 4  # so an audience of three is small
    factories.add_subscriptions(channel, 3)
    factories.add_subscriptions(other_channel, 4)
    small, large = started(channel, 2), started(other_channel, 2)
    alone = noted_calls(monkeypatch, "write_window")

    planning.run_slice(claim())

    assert recipients([*small, *large]) == [3, 3, 4, 4]
    assert [lease.channel_id for (lease,) in alone] == [other_channel.id] * 2


def test_direct_sends_that_are_planned_together_count_each_target(channel, other_channel):
    """A person has devices on two platforms; a notification names somebody who is unknown; another
    names a device twice."""
    ada = factories.make_person(channel, "ada")
    rows = [
        factories.add_subscription(channel, person=ada, platform=platform)
        for platform in ("web", "web", "ios")
    ]
    theirs = factories.make_person(other_channel, "ada")
    factories.add_subscription(other_channel, person=theirs)
    platforms = {"target_platforms": ["web", "ios"]}
    make = factories.make_direct_notification
    sends = [
        make(channel, people=["ada", "nobody"], **platforms),
        make(channel, people=["ada"], subscriptions=[rows[0]], **platforms),
        make(other_channel, people=["ada"]),
    ]
    plan_queue.start_due()

    planning.run_slice(claim())

    counted = [list(Target.objects.of(each.pk).values_list("devices", flat=True)) for each in sends]
    assert recipients(sends) == [3, 3, 1]
    assert counted == [[3, None], [3, 1], [1]]
    for each in (channel, other_channel):
        support.assert_exact(each)


def test_each_of_several_small_plans_asks_for_its_own_category(channel, other_channel):
    factories.make_category(channel, "offers", default=False)
    factories.make_category(channel, "news", default=True)
    factories.make_category(other_channel, "offers", default=True)
    factories.add_each(channel, [{"choices": {"offers": True, "news": False}}, {}, {}])
    factories.add_subscriptions(other_channel, 2)
    sends = [
        *(factories.make_notification(channel, category=key) for key in ("offers", "news", "")),
        factories.make_notification(other_channel, category="offers"),
    ]
    plan_queue.start_due()

    planning.run_slice(claim())

    left_out = [Plan.objects.get(notification=each).opted_out_count for each in sends]
    assert (recipients(sends), left_out) == ([1, 2, 3, 2], [2, 1, 0, 0])


def test_one_wakeup_serves_many_small_plans(channel):
    factories.add_subscriptions(channel, 2)
    started(channel, 12)
    assert support.waiting("web") == 0

    planning.run_slice(claim())

    assert support.waiting("web") == 1


def test_a_plan_for_nobody_ends_beside_the_others(channel):
    factories.add_subscriptions(channel, 2)
    segment = factories.make_segment(channel, segments.attribute("plan", "eq", "none"))
    nobody = factories.make_notification(channel, segment_id=segment.id)
    somebody = factories.make_notification(channel)
    support.plan()

    assert support.counts(nobody) == ("sent", 0, 0, 0)
    assert support.counts(somebody) == ("processing", 2, 0, 0)


def test_a_transaction_that_takes_too_long_ends_after_a_window(
    channel, monkeypatch, no_audience_is_small, settings
):
    monkeypatch.setattr(planning, "_TRANSACTION_SECONDS", 0.0)
    settings.PLAN_SLICE_SECONDS = 600  # else a slow machine is given fewer windows
    factories.add_subscriptions(channel, 2)
    notifications = started(channel, 3)

    left = planning.plan_windows(claim())

    assert len(left) == 2
    planning.run_slice(left)
    assert recipients(notifications) == [2, 2, 2]


def test_plans_that_a_slice_did_not_reach_are_claimed_together_and_before_those_begun(
    channel, monkeypatch, no_audience_is_small, settings
):
    monkeypatch.setattr(planning, "_TRANSACTION_SECONDS", 0.0)
    settings.PLAN_SLICE_SECONDS = 0
    factories.add_subscriptions(channel, 2)
    first, *others = started(channel, 4)

    planning.run_slice(claim())

    assert recipients([first, *others]) == [2, 0, 0, 0]
    assert planned(claim()) == {each.id for each in others}


def test_every_large_plan_gets_windows_in_turn(channel, settings):
    settings.PLAN_WINDOW = 2
    factories.add_subscriptions(channel, 5)
    notifications = started(channel, 2)
    leases = claim()

    for expected in ([2, 0], [2, 2], [4, 2], [4, 4], [5, 5]):
        leases = planning.plan_windows(leases)
        assert recipients(notifications) == expected
    assert leases == []


@pytest.mark.parametrize("halt", [pause, stop])
def test_one_that_is_halted_is_not_planned_and_the_others_are(halt, channel):
    factories.add_subscriptions(channel, 2)
    halted, *others = started(channel, 3)
    leases = claim()
    halt(halted)

    planning.run_slice(leases)

    assert recipients([halted, *others]) == [0, 2, 2]
    if halt is pause:
        resume(halted)
        support.plan()
        assert recipients([halted]) == [2]


def test_a_planner_that_dies_in_the_middle_has_planned_all_or_nothing(channel, monkeypatch):
    factories.add_subscriptions(channel, 2)
    notifications = started(channel, 3)
    leases = claim()

    def die(*_arguments, **_options):
        raise RuntimeError("the planner died")

    with monkeypatch.context() as dying:
        dying.setattr(planning, "counters_add", die)
        with pytest.raises(RuntimeError):
            planning.plan_windows(leases)
    assert recipients(notifications) == [0, 0, 0]
    assert claim() == []  # the dead planner's leases have not ended

    Plan.objects.update(lease_until=Now() - timedelta(seconds=1))
    support.plan()
    assert recipients(notifications) == [2, 2, 2]


def test_a_plan_that_another_planner_has_is_left_to_it(channel):
    factories.add_subscriptions(channel, 2)
    notifications = started(channel, 3)
    stale = claim()
    taken = stale[0].plan_id
    Plan.objects.filter(pk=taken).update(lease_until=Now() - timedelta(seconds=1))
    (current,) = claim()
    assert current.plan_id == taken

    planning.run_slice(stale)

    assert sorted(recipients(notifications)) == [0, 2, 2]
    assert Plan.objects.get(pk=taken).lease_until is not None
    planning.run_slice([current])
    assert recipients(notifications) == [2, 2, 2]


def test_a_plan_that_fails_does_not_keep_the_others_from_being_planned(channel, monkeypatch):
    factories.add_subscriptions(channel, 2)
    broken, *others = started(channel, 3)
    write, write_whole = planning.write_window, planning.write_whole

    def fail(lease, **position):
        if lease.notification_id == broken.id:
            raise RuntimeError("this plan fails")
        return write(lease, **position)

    def fail_together(leases, **options):
        for lease in leases:
            if lease.notification_id == broken.id:
                raise RuntimeError("one of these plans fails")
        return write_whole(leases, **options)

    monkeypatch.setattr(planning, "write_window", fail)
    monkeypatch.setattr(planning, "write_whole", fail_together)
    for _ in range(2):  # together, and then the broken one alone
        with pytest.raises(RuntimeError):
            support.plan()
    support.plan()

    assert recipients([broken, *others]) == [0, 2, 2]
    assert (
        Plan.objects.get(notification=broken).due_at
        > Plan.objects.get(notification=others[0]).due_at
    )

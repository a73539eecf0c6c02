"""Ranges of a large plan, which planners plan side by side."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from notifications_app.models import Batch, Delivery, Notification, Plan
from notifications_app.pipeline import plan_queue, planning, ranges, reading
from pushsvc.common.store import sql
from tests import factories
from tests.api.support import owner_of
from tests.pipeline import support
from tests.pipeline.halting import HOUR, pause, resume, stop
from tests.pipeline.parts import PRO, in_parts, subscribers
from tests.pipeline.test_quiet_hours import hours, send


@pytest.fixture(autouse=True)
def _large(settings, monkeypatch):
    """A range has ten subscribers or more, and a window four."""
    monkeypatch.setattr(ranges, "LEAST_SUBSCRIBERS", 10)
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3


def divided(channel, most=40, **fields):
    """A notification, of which the first window is written, and its ranges."""
    rows = factories.add_subscriptions(channel, most)
    notification = factories.make_notification(channel, **fields)
    plan_queue.start_due()
    lease = support.claim_plan()
    support.plan_window(lease)
    Plan.objects.leased_by(lease).hand_back()
    return rows, notification, list(notification.plans.order_by("part"))


def planned_of(plan):
    own = Delivery.objects.filter(batch_id__in=Batch.objects.filter(plan=plan).values("pk"))
    return set(own.values_list("subscription_id", flat=True))


def test_ranges_have_every_subscriber_and_none_in_common(channel):
    rows, notification, plans = divided(channel)
    assert len(plans) == 4
    assert [each.cursor for each in plans[1:]] == [each.until for each in plans[:-1]]

    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows)
    assert [len(planned_of(each)) for each in plans] == [14, 10, 10, 6]
    for plan in plans:
        plan.refresh_from_db()
        ids = planned_of(plan)
        assert len(ids) == plan.recipient_count
        assert max(ids) <= plan.until
    notification.refresh_from_db()
    assert notification.recipient_count == 40


def test_a_divided_notification_was_sent_at_once(sandbox, channel):
    """Its quiet hours begin later, and ranges are parts for which nobody waits."""
    factories.subscribe_browsers(sandbox, channel, 20)
    notification = send(channel, quiet_hours=hours(1, 2))
    support.plan(notification)
    assert notification.plans.exclude(until=None).count() == 2
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 20, 20, 0)

    address = f"/channel/{channel.pk}/statistics"
    found = owner_of(channel).call("GET", address).json()["hand_over"]

    assert [each["notifications"] for each in found] == [1, 1]


def test_several_planners_plan_a_notification_at_once_exactly(channel):
    rows = factories.add_subscriptions(channel, 200)
    notification = factories.make_notification(channel)

    support.in_threads(*[lambda: planning.work(seconds=60)] * 4)
    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows)
    assert notification.plans.count() == 4
    counted = notification.plans.values_list("recipient_count", flat=True)
    assert sum(counted) == notification.recipient_count == 200


def test_each_planner_gets_a_range_of_its_own(channel):
    divided(channel)

    claimed = [lease for _ in range(4) for lease in plan_queue.claim_plans(most=100)]

    assert len({each.plan_id for each in claimed}) == 4
    assert not any(each.is_shared for each in claimed)


def test_who_subscribes_meanwhile_is_in_the_last_range(channel):
    rows, notification, _ = divided(channel)
    late = factories.add_subscriptions(channel, 3)

    support.plan(notification)

    assert support.planned_ids(notification) == support.ids([*rows, *late])


def test_a_segment_that_needs_the_whole_channel_is_divided(channel):
    rows = subscribers(channel, pro=25, free=15)
    notification = factories.make_notification(channel, rule={"not": PRO})

    support.plan(notification)

    assert notification.plans.count() == 4
    assert support.planned_ids(notification) == support.ids(rows[25:])


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"rate_per_minute": 60}, id="with a rate"),
        pytest.param({"caps": [{"limit": 3, "hours": 24}]}, id="with caps"),
        pytest.param({"rule": {"tag": "news"}}, id="to a tag"),
    ],
)
def test_one_that_ranges_would_not_help_is_not_divided(channel, fields):
    rows, notification, plans = divided(channel, **fields)

    assert len(plans) == 1
    support.plan(notification)
    assert support.planned_ids(notification) <= support.ids(rows)


def test_a_small_one_is_not_divided(channel):
    _, _, plans = divided(channel, most=19)

    assert [each.until for each in plans] == [None]


def test_a_part_of_another_kind_is_not_divided(channel):
    subscribers(channel, pro=30, free=10)
    notification, _, _ = in_parts(channel)

    support.plan(notification)

    assert notification.plans.count() == 2


@pytest.mark.parametrize("halt", [pause, stop])
@pytest.mark.django_db(transaction=True)
def test_a_halt_that_waits_while_a_plan_is_divided_halts_every_range(channel, halt):
    factories.add_subscriptions(channel, 40)
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    lease = support.claim_plan()

    with support.waits_for(lambda: support.plan_window(lease), lambda: halt(notification)):
        pass

    assert notification.plans.count() == 4
    assert not notification.plans.filter(halted_at=None).exists()


def test_ranges_are_paused_and_resumed_together(channel):
    rows, notification, _ = divided(channel)
    pause(notification)
    assert plan_queue.claim_plans(most=100) == []

    resume(notification)
    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows)


def test_a_dead_planners_range_is_continued_by_another(channel):
    rows, notification, _ = divided(channel)
    (lost,) = plan_queue.claim_plans(most=100)
    support.plan_window(lost)
    Plan.objects.filter(pk=lost.plan_id).update(lease_until=Now() - timedelta(seconds=1))

    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows)


def test_the_lateness_of_a_range_counts_from_the_request(channel):
    _, notification, _ = divided(channel)
    hour_ago = sql.now() - HOUR
    Notification.objects.update(created_at=hour_ago, scheduled_at=hour_ago)
    support.plan(notification)

    found = [reading.read([lease]) for lease in iter(support.claim, None)]

    wanted = {each.delivery.wanted_at for one in found for each in one.recipients}
    assert wanted == {hour_ago}

"""Parts of an audience, each with its own time: no feature of today makes a second part on a
platform, so these tests make it as a start would."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from notifications_app.models import Batch, Delivery, Notification, Plan
from notifications_app.pipeline import batches, expiry, plan_queue, planning, reading
from notifications_app.reporting.details import details_of
from notifications_app.reporting.progress import progress_of
from notifications_app.sends.editing import notification_edit
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support
from tests.pipeline.halting import HOUR, began, pause, resume, stop
from tests.pipeline.parts import in_parts, release, subscribers


@pytest.fixture(autouse=True)
def _small_windows(settings):
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3


def recipients(plan):
    """As the plan counts them; its batches and their rows agree."""
    plan.refresh_from_db()
    own = Batch.objects.filter(plan=plan)
    assert sum(own.values_list("recipient_count", flat=True)) == plan.recipient_count
    rows = Delivery.objects.filter(batch_id__in=own.values("pk"))
    assert rows.count() == plan.recipient_count
    assert not own.filter(recipient_count=0).exists()
    return plan.recipient_count


def test_a_device_that_two_parts_reach_is_planned_once_by_the_first_that_finds_it(channel):
    rows = subscribers(channel, pro=5, free=6)
    notification, first, rest = in_parts(channel)

    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows)
    assert notification.recipient_count == 11
    assert recipients(first) + recipients(rest) == 11


def test_parts_that_are_planned_at_once_neither_double_nor_wait_for_ever(channel):
    rows = subscribers(channel, pro=60, free=0)
    notification, first, rest = in_parts(channel)

    support.in_threads(lambda: planning.work(seconds=60), lambda: planning.work(seconds=60))
    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows)
    assert recipients(first) + recipients(rest) == notification.recipient_count == 60


def test_a_device_that_moves_to_a_later_part_is_planned_by_it(channel):
    rows = subscribers(channel, pro=2, free=3)
    notification, first, rest = in_parts(channel, later=HOUR)
    moving = rows[0]
    moving.attributes = {"plan": "free"}
    moving.save(update_fields=["attributes"])
    support.plan(notification)
    assert support.planned_ids(notification) == support.ids(rows[1:2])

    release(rest)
    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows)
    assert (recipients(first), recipients(rest)) == (1, 4)


def test_a_planner_killed_between_parts_and_between_windows_costs_nobody_the_notification(
    channel, monkeypatch
):
    rows = subscribers(channel, pro=6, free=6)
    notification, first, rest = in_parts(channel)
    while Plan.objects.filter(status="planning").exists():
        lease = support.claim_plan()
        before = support.planned_ids(notification)
        with monkeypatch.context() as dying, suppress(RuntimeError):
            dying.setattr(planning, "counters_add", die)
            support.plan_window(lease)  # is undone, unless it found nobody
        assert support.planned_ids(notification) == before
        support.plan_window(lease)
        # and dies here, before it gives the plan back
        Plan.objects.update(lease_until=Now() - timedelta(seconds=1))

    assert support.planned_ids(notification) == support.ids(rows)
    assert recipients(first) + recipients(rest) == 12
    support.assert_exact(channel)


def die(*_arguments, **_options):
    raise RuntimeError("the planner died")


def test_a_part_is_planned_from_its_release_on_and_the_notification_ends_with_the_last(
    sandbox, channel
):
    factories.subscribe_browsers(sandbox, channel, 3)
    notification, _, rest = in_parts(channel, later=HOUR)
    support.plan()
    support.deliver(notification)
    support.tick()
    assert support.counts(notification) == ("processing", 0, 0, 0)
    assert not planning.anything_to_plan()

    release(rest)
    assert planning.anything_to_plan()
    support.plan()
    support.deliver(notification)

    assert support.counts(notification) == ("sent", 3, 3, 0)


# Time


def test_each_part_has_its_own_deadline(channel):
    subscribers(channel, pro=1, free=1)
    notification, first, rest = in_parts(channel, ttl=600)
    support.plan()
    support.end_time_of_part(first.pk)

    found = batches.overdue()
    assert [code for _, code in found] == ["expired"]
    assert Batch.objects.get(pk=found[0][0]).plan == first

    lease = support.claim()
    while lease.plan_id != rest.pk:
        lease = support.claim()
    rest.refresh_from_db()
    assert reading.read([lease]).recipients[0].limits.deadline == rest.deadline_at
    assert rest.deadline_at == notification.started_at + timedelta(seconds=600)


def test_the_expiry_of_the_notification_ends_every_part(channel):
    subscribers(channel, pro=1, free=1)
    notification, _, rest = in_parts(channel, later=HOUR, expires_at=sql.now() + 2 * HOUR)
    release(rest)
    support.plan()
    expires_at = sql.now() - timedelta(seconds=1)
    Notification.objects.filter(pk=notification.pk).update(expires_at=expires_at)

    assert [code for _, code in batches.overdue()] == ["expired"] * 2


def test_a_pause_moves_the_time_of_a_part_from_its_release_on(channel):
    notification, first, rest = in_parts(channel, later=3 * HOUR, ttl=3600)
    waiting = in_parts(channel, later=90 * HOUR, ttl=3600)[2]
    pause(notification)
    pause(waiting.notification)
    began(notification, 5 * HOUR)  # since 2 h before the release of its second part

    resume(notification)
    resume(waiting.notification)

    moved = {
        plan.pk: Plan.objects.get(pk=plan.pk).deadline_at - plan.deadline_at
        for plan in (first, rest, waiting)
    }
    assert timedelta(hours=5) <= moved[first.pk] < timedelta(hours=6)
    assert timedelta(hours=2) <= moved[rest.pk] < timedelta(hours=3)
    assert moved[waiting.pk] == timedelta()
    waiting.refresh_from_db()
    assert waiting.due_at == waiting.release_at  # no sooner because of the pause
    notification.refresh_from_db()
    latest = max(notification.plans.values_list("deadline_at", flat=True))
    assert notification.deadline_at == latest


def test_an_edit_of_the_time_to_live_moves_the_deadline_of_each_part(channel):
    notification, first, rest = in_parts(channel, later=HOUR, ttl=3600)
    pause(notification)
    edited = notification_edit(
        channel=channel, notification_id=notification.id, changes={"ttl": 7200}
    )
    for plan in (first, rest):
        now = Plan.objects.get(pk=plan.pk)
        assert now.deadline_at - plan.deadline_at == HOUR
    assert edited.deadline_at == Plan.objects.get(pk=rest.pk).deadline_at


# Who looks at parts


def test_reports_sum_the_parts_of_a_platform(channel):
    subscribers(channel, pro=2, free=3)
    notification, first, rest = in_parts(channel, later=HOUR)
    support.plan(notification)

    found = details_of(channel_id=channel.id, notification_id=notification.id)
    (web,) = found.platforms
    assert (web.recipients, web.is_planning) == (2, True)
    shown = [
        (each.release_at, each.platforms, each.is_planned, each.recipients)
        for each in found.releases
    ]
    assert shown == [
        (first.release_at, ("web",), True, 2),
        (first.release_at + HOUR, ("web",), False, 0),
    ]
    assert progress_of(notification, now=sql.now()).platforms == found.platforms

    release(rest)
    support.plan(notification)
    found = details_of(channel_id=channel.id, notification_id=notification.id)
    (web,) = found.platforms
    assert (web.recipients, web.is_planning) == (5, False)
    assert sum(each.recipients for each in found.releases) == 5


def test_a_stop_ends_the_parts_that_wait_for_their_release(channel):
    subscribers(channel, pro=2, free=3)
    notification, *_ = in_parts(channel, later=HOUR)
    support.plan(notification)

    stop(notification)
    support.tick()

    assert support.counts(notification) == ("sent", 2, 0, 2)
    assert support.codes(notification) == ["stopped"] * 2
    assert support.open_plans() == 0


def test_a_stop_before_any_part_is_released_cancels(channel):
    subscribers(channel, pro=2, free=3)
    notification, first, _ = in_parts(channel, later=HOUR)
    Plan.objects.filter(pk=first.pk).update(due_at=F("due_at") + HOUR)
    assert not planning.anything_to_plan()

    stop(notification)
    support.tick()

    assert support.counts(notification) == ("cancelled", 0, 0, 0)
    assert support.open_plans() == 0


def test_thousands_of_parts_that_wait_are_read_by_no_claim_and_no_tick(
    channel, other_channel, settings
):
    notification, first, _ = in_parts(channel, later=HOUR)
    Plan.objects.bulk_create(
        Plan(
            notification=notification,
            channel=channel,
            platform="web",
            part=part,
            release_at=first.release_at + HOUR,
            due_at=first.release_at + HOUR,
            deadline_at=first.deadline_at + HOUR,
        )
        for part in range(2, 2_000)
    )
    settings.PLAN_WINDOW, settings.BATCH_SIZE = 300, 1
    factories.add_subscriptions(other_channel, 300)
    factories.make_notification(other_channel)
    support.plan()
    factories.make_notification(other_channel)
    assert plan_queue.start_due() == 1  # so that there is something to claim
    sql.execute("ANALYZE notifications_app_plan, notifications_app_batch", {})

    calls = (
        planning.anything_to_plan,
        support.claim_plan,
        support.claim,
        batches.overdue,
        lambda: batches.due_counts(16),
        expiry.close_delivered_plans,
        expiry.decide_next,
    )
    read = [support.most_rows_read(call, as_if_large=True) for call in calls]

    assert max(read) < 1_000, read  # a claim sorts batches that are due at the same moment

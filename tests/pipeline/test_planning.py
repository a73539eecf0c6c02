"""Which subscriptions become recipients: windows, time slices, and planners that die or run
concurrently."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from notifications_app.models import Batch, Delivery, Plan
from notifications_app.pipeline import plan_queue, planning
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from tests import factories
from tests.pipeline import support


@pytest.fixture(autouse=True)
def _small_windows(settings):
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3


def leave(row):
    subscription_unsubscribe(channel=row.channel, address=Address.of("web", row.address))


def die(*_arguments, **_options):
    """A planner dies here."""
    raise RuntimeError("the planner died")


@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 13])
def test_everybody_is_planned_once_with_windows_of_any_size(channel, count):
    rows = factories.add_subscriptions(channel, count)

    notification = factories.make_notification(channel)
    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows)
    assert notification.recipient_count == count
    assert Plan.objects.get().status == "delivering"


def test_windows_are_cut_into_batches_of_the_set_size(channel):
    factories.add_subscriptions(channel, 8)

    factories.make_notification(channel)
    support.plan()

    sizes = Batch.objects.values_list("recipient_count", flat=True)
    assert sorted(sizes) == [1, 1, 3, 3]
    for batch in Batch.objects.all():
        assert Delivery.objects.filter(batch_id=batch.id).count() == batch.recipient_count


def test_no_batch_holds_recipients_of_two_push_services(channel):
    first = factories.add_subscriptions(channel, 2, push_service="fcm")
    second = factories.add_subscriptions(channel, 2, push_service="mozilla")
    other = factories.add_subscriptions(channel, 2, push_service="fcm")

    notification = factories.make_notification(channel)
    support.plan()

    services = {row.id: row.push_service for row in [*first, *second, *other]}
    batches = {batch.id: batch.push_service for batch in Batch.objects.all()}
    rows = support.deliveries(notification)
    assert rows.count() == 6
    assert all(services[row.subscription_id] == batches[row.batch_id] for row in rows)


def test_batches_follow_the_order_of_the_subscriptions_and_take_push_services_in_turn(
    channel, settings
):
    settings.PLAN_WINDOW = 24
    firsts = []
    for service in ("fcm", "mozilla"):
        rows = factories.add_subscriptions(channel, 12, push_service=service)
        firsts.append(support.ids(rows)[::3])

    factories.make_notification(channel)
    support.plan()

    begins = [
        Delivery.objects.filter(batch_id=batch_id).earliest("subscription_id").subscription_id
        for batch_id in Batch.objects.order_by("id").values_list("id", flat=True)
    ]
    assert begins == [each for pair in zip(*firsts, strict=True) for each in pair]


def test_only_active_subscriptions_of_the_channel_and_platform_are_planned(channel, other_channel):
    wanted = factories.add_subscriptions(channel, 2)
    factories.add_subscriptions(channel, 2, platform="android")
    factories.add_subscriptions(other_channel, 2)
    gone = factories.add_subscriptions(channel, 1)[0]
    leave(gone)

    notification = factories.make_notification(channel)
    support.plan()

    assert support.planned_ids(notification) == support.ids(wanted)


def test_subscribing_and_unsubscribing_during_planning_affects_no_other_recipient(channel):
    before = factories.add_subscriptions(channel, 8)
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    lease = support.claim_plan()
    assert support.plan_window(lease)

    leave(before[1])  # planned already
    leave(before[6])  # not planned yet
    after = factories.add_subscriptions(channel, 2)
    while support.plan_window(lease):
        pass

    stayed = [row for row in [*before, *after] if row is not before[6]]
    assert support.planned_ids(notification) == support.ids(stayed)


def test_a_planner_continues_where_a_dead_one_stopped(channel, monkeypatch):
    rows = factories.add_subscriptions(channel, 11)
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    dead = support.claim_plan()
    assert support.plan_window(dead)
    with monkeypatch.context() as dying:
        dying.setattr(planning, "counters_add", die)  # in the middle of a window
        with pytest.raises(RuntimeError):
            support.plan_window(dead)
    assert len(support.planned_ids(notification)) == 4
    assert support.claim_plan() is None  # the dead planner's lease has not ended

    Plan.objects.update(lease_until=Now() - timedelta(seconds=1))
    support.plan(notification)

    assert support.planned_ids(notification) == support.ids(rows)
    assert Plan.objects.get().status == "delivering"


def test_a_planner_whose_lease_another_took_writes_nothing(channel):
    factories.add_subscriptions(channel, 8)
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    stale = support.claim_plan()
    Plan.objects.update(lease_until=Now() - timedelta(seconds=1))
    current = support.claim_plan()

    assert support.plan_window(stale) is False
    planning.run_slice([stale])

    assert support.planned_ids(notification) == []
    plan = Plan.objects.get()
    assert (plan.lease_number, plan.cursor) == (current.number, None)
    assert plan.lease_until is not None


def test_a_window_that_fails_is_tried_again_later_and_other_plans_continue(
    channel, other_channel, monkeypatch
):
    factories.add_subscriptions(channel, 2)
    rows = factories.add_subscriptions(other_channel, 2)
    broken = factories.make_notification(channel)
    plan_queue.start_due()
    with monkeypatch.context() as failing:
        failing.setattr(planning, "hourly_add", die)
        with pytest.raises(RuntimeError):
            planning.run_slice([support.claim_plan()])

    healthy = factories.make_notification(other_channel)
    support.plan()

    assert support.planned_ids(healthy) == support.ids(rows)
    assert support.planned_ids(broken) == []
    Plan.objects.filter(notification=broken).update(due_at=Now())
    support.plan()
    assert len(support.planned_ids(broken)) == 2


@pytest.fixture
def cut(transactional_db):
    """The first planner that gives a plan back ends its own connection."""
    sql.execute(_CUT, {})
    yield
    sql.execute("DROP FUNCTION cut_once CASCADE", {})
    sql.execute("DROP SEQUENCE cuts", {})


_CUT = """
CREATE SEQUENCE cuts;
CREATE FUNCTION cut_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('cuts') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
  RETURN new;
END $$;
CREATE TRIGGER cut_once BEFORE UPDATE OF lease_until ON notifications_app_plan
FOR EACH ROW WHEN (new.lease_until IS NULL) EXECUTE FUNCTION cut_once()
"""


def test_a_plan_whose_connection_is_cut_while_it_is_given_back_continues_at_once(
    cut, channel, settings
):
    settings.PLAN_SLICE_SECONDS = 0
    rows = factories.add_subscriptions(channel, 6)
    notification = factories.make_notification(channel)
    plan_queue.start_due()

    planning.run_slice([support.claim_plan()])

    assert len(support.planned_ids(notification)) == 4
    assert sql.rows("SELECT last_value FROM cuts", {}) == [(2,)]
    support.plan()
    assert support.planned_ids(notification) == support.ids(rows)


def test_time_slices_let_a_later_notification_overtake_a_large_one(
    channel, other_channel, settings
):
    settings.PLAN_SLICE_SECONDS = 0
    factories.add_subscriptions(channel, 20)
    factories.add_subscriptions(other_channel, 2)
    large = factories.make_notification(channel)
    plan_queue.start_due()
    planning.run_slice([support.claim_plan()])

    factories.make_notification(other_channel)
    plan_queue.start_due()
    planning.run_slice([support.claim_plan()])

    statuses = dict(Plan.objects.values_list("notification_id", "status"))
    assert statuses.pop(large.id) == "planning"
    assert list(statuses.values()) == ["delivering"]
    support.plan()


def test_a_planner_frees_its_process_when_its_time_is_over(channel):
    factories.add_subscriptions(channel, 20)
    factories.make_notification(channel)

    assert planning.work(seconds=0.000_001) is True

    assert Plan.objects.filter(status="planning", lease_until=None).count() <= 1
    assert planning.anything_to_plan()
    assert planning.work(seconds=30) is False


def test_two_concurrent_planners_plan_everybody_exactly_once(channel, other_channel, settings):
    settings.PLAN_SLICE_SECONDS = 0
    rows = factories.add_subscriptions(channel, 60)
    others = factories.add_subscriptions(other_channel, 30)
    notifications = [factories.make_notification(channel) for _ in range(3)]
    other = factories.make_notification(other_channel)

    support.in_threads(*[lambda: planning.work(seconds=30)] * 2)

    for notification in notifications:
        assert support.planned_ids(notification) == support.ids(rows)
        assert Plan.objects.get(notification=notification).recipient_count == 60
    assert support.planned_ids(other) == support.ids(others)


def test_two_concurrent_planners_start_a_notification_once(channel):
    for _ in range(10):
        factories.make_notification(channel)

    started = support.in_threads(*[plan_queue.start_due] * 3)

    assert sum(started) == 10
    assert Plan.objects.count() == 10


def test_a_scheduled_notification_starts_when_it_is_due_and_not_before(channel):
    notification = factories.make_notification(channel, scheduled_at=Now() + timedelta(hours=1))

    support.plan(notification)
    assert notification.status == "pending"
    assert not planning.anything_to_plan()

    type(notification).objects.update(scheduled_at=Now())
    assert planning.anything_to_plan()
    support.plan(notification)
    assert notification.status == "sent"


def test_each_window_wakes_workers_up_for_its_batches_at_once(channel):
    factories.add_subscriptions(channel, 8)
    factories.make_notification(channel)
    plan_queue.start_due()

    support.plan_window(support.claim_plan())

    assert support.waiting("web") == 2


def test_a_notification_for_two_platforms_has_a_plan_for_each(channel):
    web = factories.add_subscriptions(channel, 2)
    notification = factories.make_notification(channel, target_platforms=["web", "ios"])

    support.plan(notification)

    assert set(Plan.objects.values_list("platform", "status")) == {
        ("web", "delivering"),
        ("ios", "delivering"),
    }
    assert support.planned_ids(notification) == support.ids(web)
    assert notification.status == "processing"


def test_a_notification_does_not_end_before_its_last_window(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 10)
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    lease = support.claim_plan()
    support.plan_window(lease)

    support.deliver(notification)
    support.tick()
    assert support.counts(notification) == ("processing", 4, 4, 0)

    while support.plan_window(lease):
        pass
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 10, 10, 0)
    assert [len(device.receipts) for device, _ in devices] == [1] * 10


def test_a_notification_ends_with_its_last_window_if_all_earlier_batches_are_done(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 4)
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    lease = support.claim_plan()
    assert support.plan_window(lease)  # the window is full, so there may be more
    support.deliver(notification)
    assert notification.status == "processing"

    assert not support.plan_window(lease)

    assert support.counts(notification) == ("sent", 4, 4, 0)

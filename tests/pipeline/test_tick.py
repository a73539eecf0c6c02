"""The tick repairs what a lost message, a dead worker, a second beat or the clock left behind."""

from datetime import timedelta
from functools import partial

import pytest
from django.db.models.functions import Now
from django.utils import timezone
from django_celery_beat import models
from django_celery_beat.schedulers import ModelEntry
from kombu.utils.imports import symbol_by_name

from notifications_app import retention, tasks
from notifications_app.models import Batch, Delivery, IdempotencyRecord, Notification, Plan
from notifications_app.pipeline import batches, outcomes, planning
from pushsvc.celery import app
from pushsvc.common import worker
from pushsvc.common.store import sql
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.models import Subscription
from tests import factories
from tests.ops.helpers import eventually
from tests.pipeline import support
from tests.pipeline.plans import planned_for_one, quiet_hours

MISMATCH = {"reason": "VapidPkHashMismatch"}


def lose_every_message():
    redis_client().delete("plan", "web")


def test_losing_every_message_loses_no_recipient(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 3)
    notification = factories.make_notification(channel)

    lose_every_message()
    support.tick()
    assert support.waiting("plan") > 0
    tasks.plan()
    lose_every_message()
    support.tick()
    assert support.waiting("web") > 0
    tasks.deliver("web")

    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert [len(device.receipts) for device, _ in devices] == [1, 1, 1]


def test_doubled_messages_change_nothing(sandbox, channel, settings):
    settings.BATCH_SIZE = 4
    devices = factories.subscribe_browsers(sandbox, channel, 10)
    notification = factories.make_notification(channel)

    support.in_threads(*[tasks.plan] * 3)
    support.in_threads(*[partial(tasks.deliver, "web")] * 3)

    assert support.counts(notification) == ("sent", 10, 10, 0)
    assert [len(device.receipts) for device, _ in devices] == [1] * 10


def new_beat():
    beat = symbol_by_name(app.conf.beat_scheduler)(app=app)
    beat._finalize.cancel()  # at the end of the test run there is no database
    return beat


@pytest.mark.parametrize("is_restarted", [False, True])
def test_ticks_go_on_after_the_clock_was_set_back(is_restarted, transactional_db, monkeypatch):
    redis_client().delete("tick")
    with monkeypatch.context() as clock:
        for reader in ((ModelEntry, "_default_now"), (models, "now")):
            clock.setattr(*reader, lambda *_: timezone.now() + timedelta(hours=1))
        beat = new_beat()
        eventually(lambda: beat.tick() is not None and support.waiting("tick"))
        beat.sync()

    redis_client().delete("tick")
    if is_restarted:
        beat = new_beat()

    eventually(lambda: beat.tick() is not None and support.waiting("tick"), seconds=30)


def test_concurrent_ticks_change_nothing(sandbox, channel, other_channel, settings, monkeypatch):
    settings.BATCH_SIZE = 1
    monkeypatch.setattr(tasks, "_BOUNCE_SECONDS", 60)  # on a busy machine, too
    devices = factories.subscribe_browsers(sandbox, channel, 6)
    devices[0][0].behave("error", status=400, body=MISMATCH)
    suspects = support.send(channel)
    factories.add_subscriptions(other_channel, 6)
    lost = factories.make_notification(other_channel)
    over = factories.make_notification(other_channel)
    support.plan()
    support.end_time(over)
    while support.claim() is not None:
        pass
    Batch.objects.filter(notification=over).update(status="ready")
    Batch.objects.filter(status="leased").update(lease_until=Now() - timedelta(seconds=1))

    support.in_threads(*[support.tick] * 4)

    assert not support.is_active(devices[0][1])
    assert support.counts(suspects) == ("sent", 6, 5, 1)
    assert support.counts(over) == ("sent", 6, 0, 6)
    batches = Batch.objects.filter(notification=lost)
    assert set(batches.values_list("status", "lease_losses")) == {("ready", 1)}


def test_the_tick_wakes_workers_up_only_for_due_work(channel):
    factories.add_subscriptions(channel, 1)
    factories.make_notification(channel, scheduled_at=Now() + timedelta(hours=1))
    support.tick()
    assert (support.waiting("plan"), support.waiting("web")) == (0, 0)

    Notification.objects.update(scheduled_at=Now())
    support.tick()
    assert support.waiting("plan") > 0
    support.plan()
    Batch.objects.update(due_at=Now() + timedelta(hours=1))
    lose_every_message()
    support.tick()
    assert (support.waiting("plan"), support.waiting("web")) == (0, 0)


def test_the_tick_has_a_planner_woken_up_when_a_notification_becomes_due(channel):
    seconds = (30.45, 30.46, 30.9)
    for each in seconds:
        factories.make_notification(channel, scheduled_at=Now() + timedelta(seconds=each))
    factories.make_notification(channel, scheduled_at=Now() + timedelta(hours=1))

    waits = planning.starts_within(60)

    assert waits == sorted(set(waits))
    assert 0 < len(waits) <= len(seconds)
    assert max(waits) <= 31.0


def test_a_planner_whose_clock_is_a_minute_ahead_runs_the_ticks_of_beat(processes):
    processes.start("worker-plan")
    support.until(lambda: worker.liveness(["plan"]).processes.get("plan"))
    redis_client().delete("pushsvc:ticked")
    ticks = app.conf.beat_schedule["tick"]["options"]

    tasks.tick.apply_async(queue=ticks["queue"], expires=ticks["expires"] - 60)

    support.until(lambda: worker.liveness([]).has_ticked, seconds=20)


def test_a_worker_plans_at_its_time_what_a_single_tick_saw_coming(processes, channel):
    factories.add_subscriptions(channel, 1)
    processes.start("worker-plan")
    support.until(lambda: worker.liveness(["plan"]).processes.get("plan"))
    notification = factories.make_notification(channel, scheduled_at=Now() + timedelta(seconds=1))

    support.tick()

    support.until(lambda: notification.plans.filter(status="delivering").exists())
    notification.refresh_from_db()
    assert notification.started_at >= notification.scheduled_at


def test_a_planner_that_has_not_finished_wakes_up_the_next(channel, settings, monkeypatch):
    monkeypatch.setattr(tasks, "_PLAN_TURN_SECONDS", 0.000_001)
    settings.PLAN_WINDOW = 2
    factories.add_subscriptions(channel, 20)
    factories.make_notification(channel)

    tasks.plan()

    assert Plan.objects.filter(status="planning").count() <= 1
    assert support.waiting("plan") == 1
    support.plan()


def test_a_deliverer_whose_time_is_over_wakes_up_the_next(sandbox, channel, monkeypatch):
    monkeypatch.setattr(tasks, "_TURN_SECONDS", 0.000_001)
    factories.subscribe_browsers(sandbox, channel, 1)
    factories.make_notification(channel)
    support.plan()
    lose_every_message()

    tasks.deliver("web")

    assert support.waiting("web") == 1
    support.deliver()


def test_the_tick_ends_a_notification_whose_end_was_missed(tampered_channel, sandbox):
    factories.subscribe_browsers(sandbox, tampered_channel, 2)
    notification = support.send(tampered_channel)
    Notification.objects.update(status="processing", finished_at=None)

    support.tick()

    assert support.counts(notification) == ("sent", 2, 2, 0)
    assert notification.finished_at is not None


def test_the_tick_ends_waiting_batches_at_the_deadline(sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel)
    device.behave("throttled", retry_after=600)
    notification = support.send(channel)
    support.end_time(notification)

    support.tick()

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert support.codes(notification) == ["expired"]


def test_a_tick_reads_each_row_a_few_times_however_many_sends_run(channel):
    quiet_hours()
    planned_for_one(channel, 240)

    assert support.most_rows_read(support.tick, as_if_large=True) < 10 * 240


def test_overdue_batches_are_read_a_few_times_although_many_others_were_done_lately(
    channel, tampered_channel
):
    """PostgreSQL still believes that the others wait."""
    planned_for_one(tampered_channel, 240)
    sql.execute("ANALYZE", {})
    Batch.objects.update(status="done", finished_at=Now(), delivered_count=1)
    Plan.objects.update(status="done")
    planned_for_one(channel, 240)
    Plan.objects.filter(channel=channel).update(deadline_at=Now())

    assert support.most_rows_read(batches.overdue) < 10 * 240


@pytest.mark.parametrize("since", ["deadline", "parking"])
def test_a_bounce_reads_only_its_own_batch_however_many_are_overdue(channel, settings, since):
    quiet_hours()
    planned_for_one(channel, 240)
    if since == "deadline":
        Plan.objects.update(deadline_at=Now())
    else:
        settings.PARKED_SECONDS = 0
        Batch.objects.update(status="parked", parked_at=Now())
    batch_id, code = batches.overdue()[0]

    read = support.most_rows_read(lambda: outcomes.bounce_overdue(batch_id, code), as_if_large=True)

    assert read < 10


def test_sums_that_differ_are_corrected_from_the_batches_and_logged(
    tampered_channel, sandbox, caplog
):
    factories.subscribe_browsers(sandbox, tampered_channel, 2)
    notification = factories.make_notification(tampered_channel)
    support.plan()
    Notification.objects.update(recipient_count=5)

    support.deliver()

    assert support.counts(notification) == ("sent", 2, 2, 0)
    (record,) = support.logged(caplog, "counts.corrected")
    assert record.levelname == "ERROR"


def test_sums_that_agree_are_not_logged(channel, sandbox, caplog):
    factories.subscribe_browsers(sandbox, channel, 2)
    support.send(channel)

    assert not support.logged(caplog, "counts.corrected")


def test_a_batch_that_cannot_be_written_prevents_no_wakeup(tampered_channel, other_channel, caplog):
    factories.add_subscriptions(tampered_channel, 2)
    broken = factories.make_notification(tampered_channel)
    support.plan()
    Batch.objects.update(recipient_count=0)  # fewer than its rows
    support.end_time(broken)
    factories.add_subscriptions(other_channel, 2)
    over = factories.make_notification(other_channel)
    factories.make_notification(other_channel)
    support.plan()
    support.end_time(over)
    lose_every_message()

    support.tick()

    assert support.logged(caplog, "outcome.refused")
    assert support.counts(over) == ("sent", 2, 0, 2)
    assert support.waiting("web") > 0


@pytest.fixture
def unendable(sandbox, tampered_channel):
    """A notification whose work is all done, and that the database does not let end."""
    factories.subscribe_browsers(sandbox, tampered_channel, 2)
    notification = support.send(tampered_channel)
    Notification.objects.update(status="processing", finished_at=None)
    sql.execute(_REFUSE_TO_END, {})
    yield notification
    sql.execute("DROP FUNCTION refuse_to_end CASCADE", {})


def test_a_step_that_fails_prevents_no_wakeup(unendable, other_channel, caplog):
    factories.add_subscriptions(other_channel, 2)
    factories.make_notification(other_channel)
    support.plan()
    lose_every_message()

    support.tick()

    (record,) = support.logged(caplog, "tick.step_failed")
    assert record.step == "finish_forgotten"
    assert support.waiting("web") > 0
    assert support.counts(unendable)[0] == "processing"


def test_plans_are_closed_and_not_examined_again(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 2)
    support.send(channel)
    assert support.open_plans() == 1

    support.tick()

    assert support.open_plans() == 0


@pytest.mark.parametrize(("days", "left"), [(29, 3), (31, 0)])
def test_deliveries_are_deleted_by_their_notifications_age(sandbox, tampered_channel, days, left):
    factories.subscribe_browsers(sandbox, tampered_channel, 3)
    notification = support.send(tampered_channel)
    past = Now() - timedelta(days=days)
    Notification.objects.update(finished_at=past)
    Batch.objects.update(finished_at=past)

    tasks.housekeeping()

    assert Delivery.objects.count() == left
    assert Batch.objects.exists() == bool(left)
    assert support.counts(notification) == ("sent", 3, 3, 0)
    support.tick()
    assert support.counts(notification) == ("sent", 3, 3, 0)


def test_an_old_batch_stays_while_its_notification_is_not_old(sandbox, channel, settings):
    settings.BATCH_SIZE = 1
    factories.subscribe_browsers(sandbox, channel, 3)
    support.send(channel)
    Batch.objects.update(finished_at=Now() - timedelta(days=40))

    tasks.housekeeping()

    assert Delivery.objects.count() == 3


def test_retention_deletes_everything_in_steps(tampered_channel, settings, monkeypatch, caplog):
    """More than it deletes in any case, because there is time."""
    monkeypatch.setattr(retention, "_STEP", 1)
    monkeypatch.setattr(retention, "_STEPS", 2)
    settings.BATCH_SIZE = 1
    factories.add_subscriptions(tampered_channel, 7)
    notification = factories.make_notification(tampered_channel)
    support.plan()
    support.end_time(notification)
    support.tick()
    past = Now() - timedelta(days=31)
    Notification.objects.update(finished_at=past)
    Batch.objects.update(finished_at=past)

    retention.purge()

    assert Delivery.objects.count() == 0
    (record,) = support.logged(caplog, "retention.purged")
    assert record.deliveries == 7


@pytest.mark.parametrize("limit", ["statement_timeout", "lock_timeout"])
def test_a_statement_that_is_cancelled_stops_no_other_work(
    limit, sandbox, tampered_channel, caplog
):
    factories.add_subscriptions(tampered_channel, 2)
    notification = factories.make_notification(tampered_channel)
    support.plan()
    past = Now() - timedelta(days=8)
    Notification.objects.filter(pk=notification.pk).update(paused_at=past)
    records = IdempotencyRecord.objects
    records.create(channel=tampered_channel, key="old", body_sha256="", response="{}")
    records.update(created_at=past)

    with support.cancelled_statements("notifications_app_contact", limit):
        tasks.housekeeping()

    (record,) = support.logged(caplog, "retention.failed")
    assert record.kind == "contacts"
    assert not records.exists()
    notification.refresh_from_db()
    assert notification.is_stopped


def test_long_expired_subscriptions_are_deleted(channel):
    active, old, recent = factories.add_subscriptions(channel, 3)
    for row, days in ((old, 91), (recent, 89)):
        subscription_unsubscribe(channel=channel, address=Address.of("web", row.address))
        then = Now() - timedelta(days=days)
        Subscription.objects.filter(pk=row.pk).update(expired_at=then)

    tasks.housekeeping()

    assert set(Subscription.objects.values_list("id", flat=True)) == {active.id, recent.id}


_REFUSE_TO_END = """
CREATE FUNCTION refuse_to_end() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'not now'; END $$;
CREATE TRIGGER refuse_to_end BEFORE UPDATE ON notifications_app_notification
FOR EACH ROW WHEN (NEW.status IN ('sent', 'failed')) EXECUTE FUNCTION refuse_to_end()
"""


class Clock:
    """A clock that moves only while somebody sleeps."""

    def __init__(self):
        self.now, self.slept = 0.0, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.slept.append(round(1000 * seconds))


@pytest.mark.parametrize("task", ["plan", "deliver"])
def test_turns_wait_for_more_while_each_finds_several_small_sends(
    sandbox, channel, monkeypatch, task
):
    clock = Clock()
    monkeypatch.setattr(worker, "time", clock)
    monkeypatch.setattr(tasks, f"_{task}_pace", worker.Pace())
    factories.subscribe_browsers(sandbox, channel, 1)

    def turn(sends):
        for _ in range(sends):
            factories.make_notification(channel)
        if task == "plan":
            return tasks.plan()
        planning.work(seconds=60)
        return tasks.deliver("web")

    for sends in [1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1]:
        turn(sends)

    assert clock.slept == [25, 50, 100, 100, 50, 25]
    assert not Notification.objects.filter(status="pending").exists()

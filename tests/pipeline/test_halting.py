"""What is halted costs the others nothing, whatever fails, and whichever version planned it."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from notifications_app import tasks
from notifications_app.models import Batch, Notification
from notifications_app.pipeline import batches, dispatch, halting, reading
from notifications_app.pipeline.lease import HeldLeases
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from tests import factories
from tests.pipeline import support
from tests.pipeline.halting import began, pause, planned, resume, stop

_WEEK = timedelta(days=7, seconds=1)


@pytest.mark.parametrize("halt", [pause, stop])
def test_a_worker_that_learns_of_a_halt_before_its_first_call_makes_none(halt, sandbox, channel):
    """It learns so when it writes that a recipient has unsubscribed."""
    (_, gone), (device, _) = factories.subscribe_browsers(sandbox, channel, 2)
    notification = factories.make_notification(channel)
    support.plan()
    lease = support.claim()
    subscription_unsubscribe(channel=channel, address=Address.of("web", gone.address))
    batch = reading.read([lease])
    halt(notification)

    dispatch._Pass(HeldLeases([lease]), batch).run()

    assert device.receipts == []
    assert support.codes(notification) == ["", "unsubscribed"]
    assert support.batch_statuses() == {"ready"}


@pytest.fixture
def unstoppable(channel):
    """A notification that was paused for a week, and that the database does not let stop."""
    notification = planned(channel)
    pause(notification)
    began(notification, _WEEK)
    sql.execute(_REFUSE_TO_STOP.format(notification.id), {})
    yield notification
    sql.execute("DROP FUNCTION refuse_to_stop CASCADE", {})


def test_a_notification_that_cannot_be_stopped_holds_up_neither_others_nor_retention(
    unstoppable, other_channel, tampered_channel, caplog
):
    old = planned(tampered_channel)
    stop(old)
    support.tick()
    for rows in (Batch.objects.filter(notification=old), Notification.objects.filter(pk=old.pk)):
        rows.update(finished_at=Now() - timedelta(days=31))
    others = [planned(other_channel) for _ in range(3)]
    for each in others:
        pause(each)
        began(each, _WEEK)

    tasks.housekeeping()

    assert not Batch.objects.filter(notification=old).exists()
    assert Notification.objects.get(pk=unstoppable.pk).is_paused
    stopped = {record.notification for record in support.logged(caplog, "notification.stopped")}
    assert stopped == {each.id for each in others}


def test_a_notification_resumed_before_it_is_stopped_goes_on(channel, caplog):
    notification = planned(channel)
    pause(notification)
    began(notification, _WEEK)
    assert halting.long_paused() == [notification.id]
    resume(notification)

    halting.stop_long_paused(notification.id)

    assert support.logged(caplog, "notification.stopped") == []
    assert support.claim().notification_id == notification.id


def test_counting_due_batches_does_not_read_those_of_paused_notifications(
    channel, other_channel, settings
):
    settings.BATCH_SIZE = 1
    pause(planned(channel, subscribers=500))
    planned(other_channel, subscribers=3)
    Batch.objects.filter(channel=channel).update(due_at=F("due_at") - timedelta(hours=1))
    sql.execute("ANALYZE notifications_app_plan, notifications_app_batch", {})

    read = support.most_rows_read(lambda: batches.due_counts(16), as_if_large=True)
    assert read < 50
    assert batches.due_counts(16) == {"web": 3}


_REFUSE_TO_STOP = """
CREATE FUNCTION refuse_to_stop() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'not now'; END $$;
CREATE TRIGGER refuse_to_stop BEFORE UPDATE ON notifications_app_notification
FOR EACH ROW WHEN (NEW.stopped_at IS NOT NULL AND NEW.id = '{}')
EXECUTE FUNCTION refuse_to_stop()
"""

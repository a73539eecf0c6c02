"""Only the changes of state that `states.py` declares happen, in Python and in SQL."""

from collections import Counter
from itertools import permutations

import pytest
from django.db.models.functions import Now

from channels_app.models import ProviderCredential
from channels_app.pauses import platform_pause
from notifications_app.delivery.types import Accepted, Deferred, Gone, Misconfigured
from notifications_app.models import Batch, Delivery, Notification, Plan
from notifications_app.pipeline import batches, outcomes, plan_queue
from notifications_app.pipeline.lease import HeldLeases
from notifications_app.pipeline.transitions import Limits, transition_of
from notifications_app.sends.services import notification_cancel, notification_stop
from notifications_app.states import (
    BatchStatus,
    DeliveryStatus,
    NotificationStatus,
    PlanStatus,
    next_states,
)
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support

MODELS = {
    Notification: NotificationStatus,
    Plan: PlanStatus,
    Batch: BatchStatus,
    Delivery: DeliveryStatus,
}
DECLARED = {
    (model, str(before.value), str(after.value))
    for model, states in MODELS.items()
    for before in states
    for after in next_states(before)
}


@pytest.fixture
def changed(transactional_db):
    """The changes of state so far: a Counter of (model, before, after)."""
    sql.execute(_WATCH, {})
    for model in MODELS:
        sql.execute(_WATCH_TABLE.format(table=model._meta.db_table), {})
    models = {model._meta.db_table: model for model in MODELS}

    def so_far():
        found = sql.rows("SELECT source, before, after FROM state_changes", {})
        return Counter((models[source], before, after) for source, before, after in found)

    yield so_far
    sql.execute("DROP FUNCTION watch_state CASCADE; DROP TABLE state_changes", {})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_row_changes_only_to_a_state_that_its_state_may_become(tampered_channel, model):
    factories.add_subscriptions(tampered_channel, 1)
    factories.make_notification(tampered_channel)
    support.plan()
    counts = {"recipient_count": 0} if model in (Notification, Batch) else {}

    def with_moment(status):
        """A batch is done at a moment."""
        is_done = status == BatchStatus.DONE
        return {"finished_at": Now() if is_done else None} if model is Batch else {}

    for before, after in permutations(MODELS[model], 2):
        model.objects.update(status=before, **counts, **with_moment(before))
        became = model.objects.become(after, **with_moment(after))

        assert became == (after in next_states(before))
        assert model.objects.get().status == (after if became else before)


def test_the_pipeline_makes_every_declared_change_and_no_other(changed, google, channel, settings):
    settings.BATCH_SIZE = 1
    google.store(channel)
    factories.add_subscriptions(channel, 5, platform="android")
    first = planned(channel)
    answer(support.claim("android"), Accepted())
    answer(support.claim("android"), Gone("x", suspect=True))
    later = support.claim("android")
    answer(later, Deferred("x"))
    HeldLeases([later]).hand_back(finished_pass=True)
    support.lose_lease(support.claim("android").batch_id)
    refused = support.claim("android")
    answer(refused, Misconfigured("x"))
    HeldLeases([refused]).park()
    platform_pause(channel_id=channel.id, platform="android", version=1, code="x", detail="")
    support.tick()
    HeldLeases([batches.claim_parked("android", channel.id)]).park()
    ProviderCredential.objects.update(paused_at=None)
    support.tick()
    support.end_time(first)
    support.tick()  # bounces the rest, and closes the plan
    support.tick()
    assert support.counts(first) == ("sent", 5, 1, 4)

    parked = planned(channel)
    while lease := support.claim("android"):
        HeldLeases([lease]).park()
    platform_pause(channel_id=channel.id, platform="android", version=1, code="x", detail="")
    support.end_time(parked)
    support.tick()
    support.tick()
    assert support.counts(parked) == ("failed", 5, 0, 5)

    cancelled = factories.make_notification(channel)
    notification_cancel(channel_id=channel.id, notification_id=cancelled.id)
    stopped = factories.make_notification(channel)
    plan_queue.start_due()
    notification_stop(channel_id=channel.id, notification_id=stopped.id)

    assert set(changed()) == DECLARED


def planned(channel):
    notification = factories.make_notification(channel, target_platforms=["android"])
    support.plan(notification)
    return notification


def answer(lease, outcome):
    """Writes this outcome for the batch's only recipient, as a worker does."""
    row = Delivery.objects.get(batch_id=lease.batch_id)
    deadline = Notification.objects.get(pk=lease.notification_id).deadline_at
    change = transition_of(
        support.due(row),
        outcome,
        registered_at=lease.claimed_at,
        now=lease.now(),
        limits=Limits(deadline, 12, 3600),
    )
    outcomes.record([lease], [change])


_WATCH = """
CREATE TABLE state_changes (source text, before text, after text);
CREATE FUNCTION watch_state() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  INSERT INTO state_changes VALUES (TG_TABLE_NAME, OLD.status, NEW.status);
  RETURN NULL;
END $$
"""
_WATCH_TABLE = """
CREATE TRIGGER watch_state AFTER UPDATE ON {table}
FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION watch_state()
"""

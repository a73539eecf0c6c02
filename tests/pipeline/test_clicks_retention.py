"""Clicks on notifications that are past their retention."""

import json
from datetime import timedelta

import pytest
from django.db import transaction

from channels_app.selectors import channel_totals
from notifications_app import retention
from notifications_app.events import events_record
from notifications_app.models import Batch, Delivery, Notification
from notifications_app.pipeline import outcomes
from pushsvc.common.store import sql
from tests.pipeline import support
from tests.pipeline.clicks import claimed, meanwhile, planned, reported


@pytest.fixture
def over(tampered_channel, settings):
    """A notification past its retention: (notification, clicks)."""
    settings.DELIVERY_RETENTION_DAYS = 0
    notification, clicks = planned(tampered_channel, 2)
    lease, transitions = claimed(notification)
    outcomes.record([lease], transitions)
    return notification, clicks


@pytest.mark.parametrize("count", [1, 2])
def test_a_click_after_retention_changes_nothing(over, count):
    notification, clicks = over

    with meanwhile(lambda: events_record(clicks[:count])):
        retention.purge()

    assert not Delivery.objects.exists()
    assert reported(notification) == (0, 0, 0)
    assert channel_totals(notification.channel_id).clicked == 0


def test_a_click_before_retention_stays_counted(over):
    notification, clicks = over

    with meanwhile(retention.purge):
        events_record(clicks[:1])

    assert not Delivery.objects.exists()
    assert reported(notification) == (1, 1, 0)
    assert channel_totals(notification.channel_id).clicked == 1


def test_retention_passes_over_a_notification_whose_clicks_are_being_counted(over):
    notification, clicks = over

    with transaction.atomic():
        events_record(clicks)
        support.in_threads(retention.purge)
        assert Delivery.objects.count() == 2
    retention.purge()

    assert not Delivery.objects.exists()
    assert reported(notification) == (2, 2, 0)


def test_retention_keeps_up_with_batches_of_one_recipient(over):
    """As direct sends have. 5,000 in a minute, read in the order of their index."""
    sql.execute(_SMALL_BATCHES, {})
    sql.execute("ANALYZE notifications_app_batch", {})
    given = {"age": timedelta(), "limit": 1}
    ((plan,),) = sql.rows(f"EXPLAIN (FORMAT JSON) {retention._PURGE_BATCHES}", given)
    assert '"batch_finished"' in json.dumps(plan)

    retention.purge()

    assert (Delivery.objects.count(), Batch.objects.count()) == (0, 0)


_SMALL_BATCHES = """
WITH made AS (
  INSERT INTO notifications_app_batch (plan_id, notification_id, channel_id, platform,
    push_service, status, finished_at, recipient_count, delivered_count)
  SELECT plan_id, notification_id, channel_id, platform, push_service, status, finished_at, 1, 1
  FROM notifications_app_batch, generate_series(1, 5000)
  RETURNING id, notification_id
)
INSERT INTO notifications_app_delivery (notification_id, subscription_id, batch_id, status)
SELECT notification_id, gen_random_uuid(), id, 1 FROM made
"""


def test_the_counts_of_a_notification_survive_its_deliveries(over):
    notification, clicks = over
    events_record(clicks)
    retention.purge()

    events_record(clicks)

    assert reported(Notification.objects.get(pk=notification.pk)) == (2, 2, 0)
    assert support.event_hours(notification) == {("web", "received"): 2, ("web", "clicked"): 2}

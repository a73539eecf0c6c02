"""When devices clicked last: what a click notes, and beside what it may run."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from channels_app.models import ChannelCounter
from notifications_app.events import EventKind, events_record
from pushsvc.common.store import sql
from subscriptions_app.models import LastClick, Subscription
from tests import factories
from tests.pipeline import support
from tests.pipeline.clicks import meanwhile, planned, reported
from tests.segments import field


@pytest.fixture
def shop(transactional_db):
    """A channel whose rows the test deletes without their counts."""
    return factories.make_channel("Shop")


def noted():
    return dict(LastClick.objects.values_list("subscription_id", "clicked_at"))


def midnight():
    return datetime.combine(sql.now().astimezone(UTC).date(), datetime.min.time(), UTC)


def test_a_click_is_noted_and_nothing_else_is(channel):
    _, clicks = planned(channel, 3)
    before = sql.now()

    events_record([clicks[0], clicks[1]._replace(kind=EventKind.DISMISSED)])
    events_record([clicks[2]._replace(kind=EventKind.RECEIVED)])

    assert list(noted()) == [clicks[0].subscription_id]
    assert before <= noted()[clicks[0].subscription_id] <= sql.now()


def test_the_first_click_of_a_day_is_noted(channel):
    """A later click of the same day writes nothing, and one of another day replaces it."""
    _, (first,) = planned(channel, 1)
    one = first.subscription_id
    for earlier, stays in ((midnight(), True), (midnight() - timedelta(seconds=1), False)):
        again = factories.make_notification(channel)
        support.plan(again)
        LastClick.objects.update_or_create(subscription_id=one, defaults={"clicked_at": earlier})

        events_record([first._replace(notification_id=again.id)])

        assert (noted()[one] == earlier) == stays
        assert reported(again) == (1, 1, 0)


def test_simultaneous_clicks_of_a_device_on_several_notifications_note_one(channel, record):
    _, first = planned(channel, 5)
    second = factories.make_notification(channel)
    support.plan(second)
    both = first + [each._replace(notification_id=second.id) for each in first]

    support.in_threads(*[lambda order=order: record(order) for order in (both, both[::-1]) * 4])

    assert noted().keys() == {each.subscription_id for each in first}
    assert reported(second) == (5, 5, 0)


def test_a_click_waits_for_the_deletion_of_its_device(shop):
    """Otherwise both would wait for each other: the deletion takes the channel's totals."""
    notification, clicks = planned(shop, 1)

    with meanwhile(lambda: events_record(clicks)):
        Subscription.objects.filter(pk=clicks[0].subscription_id).delete()
        ChannelCounter.objects.filter(channel=shop).update(clicked=F("clicked"))

    assert noted() == {}
    assert reported(notification) == (1, 1, 0)


def test_a_deleted_device_leaves_no_click(shop):
    _, clicks = planned(shop, 2)
    events_record(clicks)

    sql.execute(
        "DELETE FROM subscriptions_app_subscription WHERE id = %(id)s",
        {"id": clicks[0].subscription_id},
    )

    assert list(noted()) == [clicks[1].subscription_id]


def test_a_send_by_the_last_click_counts_days_from_its_start(channel):
    """A window that is planned later reaches nobody who clicked since, and misses nobody."""
    _, clicks = planned(channel, 3)
    now = sql.now()
    for days, each in zip((29, 31), clicks[:2], strict=True):
        LastClick.objects.create(
            subscription_id=each.subscription_id, clicked_at=now - timedelta(days=days)
        )
    lately = field("last_clicked_at", "gte", {"days_ago": 30})
    recent, old, never = (each.subscription_id for each in clicks)

    def reached(rule):
        sent = factories.make_notification(channel, rule=rule)
        support.plan(sent)
        return support.planned_ids(sent)

    assert set(reached(lately)) == {recent}
    assert set(reached({"not": lately})) == {old, never}
    assert set(reached(field("last_clicked_at", "exists", False))) == {never}

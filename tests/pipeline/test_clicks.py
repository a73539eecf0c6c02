"""Clicks concurrent with each other, with the outcomes of their deliveries, and with retention."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.db.models import Sum

from channels_app.selectors import channel_totals
from notifications_app import retention
from notifications_app.events import Event, EventKind, events_record
from notifications_app.models import Batch, Delivery, HourlyStat, Notification
from notifications_app.pipeline import dispatch, outcomes
from notifications_app.pipeline.transitions import DueDelivery, Transition
from notifications_app.states import DeliveryStatus
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support

SEED = 20261121


def planned(channel, count, **fields):
    """A notification to devices that are never called, and a click of each."""
    rows = factories.add_subscriptions(channel, count)
    notification = factories.make_notification(channel, **fields)
    support.plan(notification)
    return notification, [Event(notification.id, row.id, EventKind.CLICKED) for row in rows]


def claimed(notification):
    """The lease of its batch, and what a worker would write for each recipient."""
    transitions = [
        Transition(
            DueDelivery(row.subscription_id, 0, None, 0), DeliveryStatus.DELIVERED, attempts=1
        )
        for row in support.deliveries(notification)
    ]
    return support.claim(), transitions


def reported(notification):
    notification.refresh_from_db()
    return (
        notification.received_count,
        notification.clicked_count,
        notification.dismissed_count,
    )


def record_apart(reports):
    """As another process would: in a transaction of its own."""
    with transaction.atomic():
        events_record(reports)


@pytest.fixture(params=[events_record, record_apart], ids=["one process", "several"])
def record(request):
    return request.param


@contextmanager
def meanwhile(call):
    """Runs `call` beside a transaction that is open in the test and ends with the block. The
    call must wait for that transaction, and must not fail."""

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            yield
            called = pool.submit(support.closing_connection(call))
            support.until(support.waiting_sessions)
        called.result(timeout=60)


def test_twenty_simultaneous_clicks_with_one_token_count_once(channel, record):
    notification, clicks = planned(channel, 1)

    support.in_threads(*[lambda: record(clicks)] * 20)

    assert reported(notification) == (1, 1, 0)
    assert channel_totals(channel.id).clicked == 1


def test_twenty_recipients_who_click_simultaneously_count_twenty(channel, record):
    notification, clicks = planned(channel, 20)

    support.in_threads(*[lambda each=each: record([each]) for each in clicks])

    assert reported(notification) == (20, 20, 0)
    assert HourlyStat.objects.aggregate(clicked=Sum("clicked")) == {"clicked": 20}


def test_a_repeated_click_is_recognised_after_waiting_for_the_first(channel):
    notification, clicks = planned(channel, 1)
    both = [*clicks, clicks[0]._replace(kind=EventKind.DISMISSED)]

    with meanwhile(lambda: events_record(both)):
        events_record(clicks)

    assert reported(notification) == (1, 1, 1)


def test_requests_that_name_the_same_recipients_in_any_order_do_not_deadlock(
    channel, other_channel, record
):
    notifications, clicks = [], []
    for owner in (channel, other_channel, channel, other_channel):
        notification, some = planned(owner, 5)
        notifications.append(notification)
        clicks += some
    events = [each._replace(kind=event) for each in clicks for event in EventKind.values]
    orders = [random.Random(SEED + number).sample(events, len(events)) for number in range(8)]  # noqa: S311 (a test's order)

    def report(order):
        for start in range(0, len(order), 20):
            record(order[start : start + 20])

    support.in_threads(*[lambda order=order: report(order) for order in orders])

    assert [reported(each) for each in notifications] == [(5, 5, 5)] * 4


def test_a_click_before_the_outcome_is_written_is_counted(sandbox, channel):
    ((_, subscription),) = factories.subscribe_browsers(sandbox, channel)
    notification = factories.make_notification(channel)
    support.plan(notification)
    click = [Event(notification.id, subscription.id, EventKind.CLICKED)]

    events_record(click)
    assert support.delivery(notification, subscription).status == DeliveryStatus.WAITING
    assert reported(notification) == (1, 1, 0)
    support.assert_exact(channel)

    support.deliver(notification)
    events_record(click)
    assert support.counts(notification) == ("sent", 1, 1, 0)
    assert reported(notification) == (1, 1, 0)


def test_a_click_waits_for_the_flush_of_its_delivery_and_is_counted(channel):
    notification, clicks = planned(channel, 1)
    lease, transitions = claimed(notification)

    with meanwhile(lambda: events_record(clicks)):
        outcomes.record(lease, transitions)

    assert support.counts(notification) == ("sent", 1, 1, 0)
    assert reported(notification) == (1, 1, 0)


def test_a_flush_waits_for_the_click_on_its_delivery_and_is_counted(channel):
    notification, clicks = planned(channel, 1)
    lease, transitions = claimed(notification)

    with meanwhile(lambda: outcomes.record(lease, transitions)):
        events_record(clicks)

    assert support.counts(notification) == ("sent", 1, 1, 0)
    assert reported(notification) == (1, 1, 0)


def test_a_request_for_several_recipients_locks_none_while_it_waits_for_a_flush(channel):
    notification, clicks = planned(channel, 3)
    lease, transitions = claimed(notification)

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            sql.rows("SELECT FROM notifications_app_batch FOR NO KEY UPDATE", {})
            called = pool.submit(lambda: (events_record(clicks), connection.close()))
            support.until(support.waiting_sessions)
            free = sql.rows("SELECT FROM notifications_app_delivery FOR UPDATE NOWAIT", {})
            assert len(free) == 3
            outcomes.record(lease, transitions)
        called.result(timeout=60)

    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert reported(notification) == (3, 3, 0)


def test_clicks_concurrent_with_flushes_lose_neither_clicks_nor_outcomes(
    sandbox, channel, settings, record
):
    settings.BATCH_SIZE, settings.FLUSH_OUTCOMES = 10, 3
    devices = factories.subscribe_browsers(sandbox, channel, 40)
    notifications = [factories.make_notification(channel) for _ in range(2)]
    support.plan()
    clicks = [
        Event(notification.id, subscription.id, EventKind.CLICKED)
        for notification in notifications
        for _, subscription in devices
    ]

    def report(number):
        order = random.Random(SEED + number).sample(clicks, len(clicks))  # noqa: S311 (a test's order)
        size = 1 if number % 2 else 20
        for start in range(0, len(order), size):
            record(order[start : start + size])

    def all_sent():
        dispatch.deliver("web", seconds=30)  # passes over a batch that a request has locked
        return not Notification.objects.filter(status="processing").exists()

    support.in_threads(
        *[lambda number=number: report(number) for number in range(4)],
        *[lambda: support.until(all_sent)] * 2,
    )

    for notification in notifications:
        assert support.counts(notification) == ("sent", 40, 40, 0)
        assert reported(notification) == (40, 40, 0)
    assert Counter(len(device.receipts) for device, _ in devices) == {2: 40}


def test_a_bounced_recipient_who_clicks_is_counted_as_clicked(channel):
    """The answer to a call may be lost although the message arrived."""
    notification, clicks = planned(channel, 1)
    outcomes.bounce_overdue(Batch.objects.get().id, "expired")

    events_record(clicks)

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert reported(notification) == (1, 1, 0)


def test_clicks_are_in_the_hourly_rows_of_their_platform(channel):
    notification, clicks = planned(channel, 2)
    (phone,) = factories.add_subscriptions(channel, 1, platform="ios", push_service="apns")
    to_phones = factories.make_notification(channel, target_platforms=["ios"])
    support.plan(to_phones)

    events_record([*clicks, Event(to_phones.id, phone.id, EventKind.CLICKED)])

    clicked = HourlyStat.objects.values_list("platform").annotate(clicked=Sum("clicked"))
    assert dict(clicked) == {"ios": 1, "web": 2}
    assert (reported(notification), reported(to_phones)) == ((2, 2, 0), (1, 1, 0))


def test_only_a_new_click_waits_for_the_disk(channel):
    _, (click,) = planned(channel, 1)

    def waits(*events):
        with transaction.atomic():
            sql.execute("SET LOCAL synchronous_commit TO on", {})
            events_record([click._replace(kind=event) for event in events])
            return sql.rows("SHOW synchronous_commit", {}) == [("on",)]

    before = sql.rows("SHOW synchronous_commit", {})
    assert not waits("received")
    assert not waits("received", "dismissed")
    assert waits("clicked", "received")
    assert not waits("clicked")
    assert sql.rows("SHOW synchronous_commit", {}) == before


@pytest.fixture
def over(tampered_channel, settings):
    """A notification past its retention: (notification, clicks)."""
    settings.DELIVERY_RETENTION_DAYS = 0
    notification, clicks = planned(tampered_channel, 2)
    lease, transitions = claimed(notification)
    outcomes.record(lease, transitions)
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


def test_the_counts_of_a_notification_survive_its_deliveries(over):
    notification, clicks = over
    events_record(clicks)
    retention.purge()

    events_record(clicks)

    assert reported(Notification.objects.get(pk=notification.pk)) == (2, 2, 0)

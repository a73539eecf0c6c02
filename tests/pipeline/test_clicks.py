"""Clicks concurrent with each other and with the outcomes of their deliveries."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.db.models import Sum

from channels_app.selectors import channel_totals
from notifications_app.events import Event, EventKind, events_record
from notifications_app.models import Batch, HourlyStat, Notification
from notifications_app.pipeline import dispatch, outcomes
from notifications_app.states import DeliveryStatus
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support
from tests.pipeline.clicks import claimed, meanwhile, planned, reported

SEED = 20261121


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


@pytest.mark.parametrize("is_click_first", [False, True])
def test_a_click_and_the_flush_of_its_delivery_wait_for_each_other(is_click_first, channel):
    notification, clicks = planned(channel, 1)
    lease, transitions = claimed(notification)
    both = [lambda: outcomes.record([lease], transitions), lambda: events_record(clicks)]
    first, second = reversed(both) if is_click_first else both

    with meanwhile(second):
        first()

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
            outcomes.record([lease], transitions)
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
    support.end_time(notification)
    outcomes.bounce_overdue(Batch.objects.get().id, "expired")

    events_record(clicks)

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert reported(notification) == (1, 1, 0)


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

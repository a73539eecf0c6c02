"""A send's own rate: how many recipients workers take up in a minute.

The time of a rate is a column. A test passes time by moving that column back.
"""

from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels_app.models import Channel
from notifications_app import retention
from notifications_app.content.values import Content, SendRequest
from notifications_app.models import Batch, Delivery, Notification, Plan, SendRate
from notifications_app.pipeline import batches, send_rates
from notifications_app.reporting.explaining import devices_asked, notification_explained
from notifications_app.reporting.installation import open_batches
from notifications_app.sends.editing import notification_edit
from notifications_app.sends.services import (
    notification_accept,
    notification_pause,
    notification_resume,
)
from pushsvc.common.platforms import Platform
from tests import factories
from tests.pipeline import support

RATE = 60  # recipients a minute: batches have 10


@pytest.fixture(autouse=True)
def _forget():
    send_rates._not_due.clear()


def send(channel, count=45, *, rate=RATE, **fields):
    factories.add_subscriptions(channel, count, push_service="fcm")
    notification = factories.make_notification(channel, rate_per_minute=rate, **fields)
    support.plan(notification)
    return notification


def pass_time(seconds):
    SendRate.objects.update(next_at=F("next_at") - timedelta(seconds=seconds))
    send_rates._not_due.clear()


def claimed(**how):
    return [lease.charged for lease in iter(lambda: support.claim(**how), None)]


@pytest.mark.parametrize(
    ("rate", "expected"), [(None, 1000), (0, 1000), (1, 1), (9, 9), (60, 10), (6000, 1000)]
)
def test_batches_of_a_slow_send_are_small(rate, expected):
    assert send_rates.batch_size(rate) == expected


def test_a_batch_is_claimed_when_the_time_of_those_before_it_is_over(channel):
    send(channel)
    assert sorted(Batch.objects.values_list("recipient_count", flat=True)) == [5, *[10] * 4]

    assert claimed() == [10]
    pass_time(7.5)
    assert claimed() == []
    assert batches.due_counts(most=16) == {}
    pass_time(0.6)
    assert batches.due_counts(most=16)["web"] > 0
    assert claimed() == [10]
    pass_time(60)
    assert claimed() == [10], "time that nobody used is lost"


def test_all_platforms_share_the_rate(channel):
    Channel.objects.update(android_enabled=True)
    factories.add_subscriptions(channel, 20, push_service="fcm", platform="android")
    send(channel, 20, target_platforms=["web", "android"])

    assert claimed(platform="android") == [10]
    assert claimed() == []
    pass_time(10)
    assert claimed() == [10]
    assert claimed(platform="android") == []


def test_other_sends_do_not_wait_and_are_not_served_with_it(channel):
    send(channel)
    assert claimed() == [10]
    other = factories.make_notification(channel)
    support.plan(other)

    assert {each.notification_id for each in support.claim_together()} == {other.id}
    assert support.claim() is None


def test_many_sends_that_wait_for_their_turn_cost_a_claim_few_statements(channel, other_channel):
    factories.add_subscriptions(channel, 2, push_service="fcm")
    for _ in range(20):
        factories.make_notification(channel, rate_per_minute=1)
    support.plan()
    assert claimed() == [1] * 20
    send_rates._not_due.clear()
    factories.add_subscriptions(other_channel, 1, push_service="fcm")
    other = factories.make_notification(other_channel)
    support.plan()

    with support.statements() as made:
        assert support.claim().notification_id == other.id
        assert support.claim() is None

    assert len(made) < 20


def test_the_time_zones_of_a_send_by_local_time_share_the_rate(channel):
    """Their parts are released at different moments. That has no effect on who may be called."""
    zones = ["Etc/GMT-3", "Etc/GMT+5"]
    factories.add_each(
        channel, [{"timezone": each, "push_service": "fcm"} for each in zones for _ in range(15)]
    )
    request = SendRequest(
        content=Content(body="Fresh bread"),
        target_platforms=(Platform.WEB,),
        local_at="2001-01-01T00:00",  # over everywhere, so it is time at once
        rate_per_minute=RATE,
    )
    notification = notification_accept(channel=channel, request=request)
    support.plan(notification)

    assert set(Plan.objects.filter(recipient_count__gt=0).values_list("has_rate")) == {(True,)}
    assert claimed() == [10]
    pass_time(10)
    assert claimed() == [10]


def test_two_workers_claim_one_batch(channel):
    send(channel)
    found = support.in_threads(*[support.claim] * 4)
    assert sorted(lease.charged for lease in found if lease) == [10]


@pytest.mark.parametrize(
    ("of_channel", "of_send", "expected"),
    [(None, None, None), (60, None, 60), (60, 0, 0), (60, 600, 600), (None, 600, 600)],
)
def test_the_channels_rate_counts_at_the_start_unless_the_send_has_its_own(
    channel, of_channel, of_send, expected
):
    factories.add_subscriptions(channel, 3)
    notification = factories.make_notification(channel, rate_per_minute=of_send)
    Channel.objects.update(rate_per_minute=of_channel)
    support.plan(notification)
    Channel.objects.update(rate_per_minute=7)
    notification.refresh_from_db()

    assert notification.rate_per_minute == expected
    assert Plan.objects.get().has_rate is (True if expected else None)
    assert SendRate.objects.exists() == bool(expected)


def test_a_test_to_one_device_has_no_rate(channel):
    Channel.objects.update(rate_per_minute=60)
    device = factories.add_subscription(channel)
    notification = factories.make_notification(channel, only_subscription_id=device.id)
    support.plan(notification)
    assert notification.rate_per_minute is None


def edit(notification, **changes):
    own = {"channel_id": notification.channel_id, "notification_id": notification.id}
    notification_pause(**own)
    notification_edit(
        channel=Channel.objects.get(pk=notification.channel_id),
        notification_id=notification.id,
        changes=changes,
    )
    notification_resume(**own)
    send_rates._not_due.clear()


def test_an_edit_while_paused_changes_lifts_and_gives_a_rate(channel):
    notification = send(channel)
    hand_back(support.claim())
    edit(notification, rate_per_minute=600)
    pass_time(10)
    assert claimed() == [10, 10, 10]
    hand_back(*Batch.objects.leased())
    edit(notification, rate_per_minute=0)
    assert claimed() == [0] * 5
    hand_back(*Batch.objects.leased())
    edit(notification, rate_per_minute=RATE)
    pass_time(3)
    assert claimed() == [10]
    hand_back(*Batch.objects.leased())
    Channel.objects.update(rate_per_minute=6000)
    edit(notification, rate_per_minute=None)
    notification.refresh_from_db()
    assert notification.rate_per_minute == 6000


@pytest.mark.parametrize("between", [(), (0,)], ids=["raised", "lifted before"])
def test_a_rate_that_was_too_low_by_mistake_holds_nothing_up_when_it_is_raised(channel, between):
    """Its batches are large, because they were planned before."""
    notification = send(channel, rate=600)
    edit(notification, rate_per_minute=1)
    assert claimed() == [45]
    hand_back(*Batch.objects.leased())
    assert claimed() == []  # for 45 minutes
    for rate in (*between, 6000):
        edit(notification, rate_per_minute=rate)
    assert claimed()[:1] == [45]


def hand_back(*leases):
    ids = [getattr(each, "batch_id", None) or each.pk for each in leases]
    Batch.objects.filter(pk__in=ids).update(status="ready", lease_until=None, due_at=Now())


def test_a_plan_that_was_leased_before_an_edit_keeps_what_the_edit_says(channel):
    """The planner has read the old rate, and plans after the pause."""
    factories.add_subscriptions(channel, 3)
    notification = factories.make_notification(channel, rate_per_minute=RATE)
    support.plan_queue.start_due()
    lease = support.claim_plan()
    edit(notification, rate_per_minute=0)
    support.plan_window(lease)

    assert Plan.objects.get().has_rate is False
    assert claimed() == [0]


def test_who_is_not_called_takes_nothing_of_the_rate(channel):
    """A pass may call only some of its recipients, for example at a limited push service."""
    send(channel)
    lease = support.claim()
    send_rates.charge(lease.notification_id, -8)
    assert claimed() == [10]


def test_who_waits_for_their_turn_is_told_so(channel):
    notification = send(channel)
    device = Delivery.objects.first().subscription_id
    _, devices = devices_asked(channel.id, subscription_id=device)
    (found,) = notification_explained(channel, notification.id, devices).devices
    assert (found.verdict, found.because) == ("waiting", "send_rate")
    assert "at most 60 recipients a minute" in found.steps[0].detail


def test_a_send_with_a_rate_is_not_late(channel):
    send(channel)
    Batch.objects.update(due_at=Now() - timedelta(hours=1))
    Plan.objects.update(due_at=Now() - timedelta(hours=1))
    assert open_batches()["web", "ready"].lateness == timedelta()


def test_rows_are_deleted_after_the_end(channel):
    notification = send(channel)
    retention.purge()
    assert SendRate.objects.get().notification_id == notification.id
    Batch.objects.update(status="done", bounced_count=F("recipient_count"), finished_at=Now())
    Notification.objects.update(status="sent", bounced_count=F("recipient_count"))
    retention.purge()
    assert not SendRate.objects.exists()
    restore(notification)


def restore(notification):
    Notification.objects.update(status="processing", bounced_count=0)
    Batch.objects.update(status="ready", bounced_count=0, finished_at=None)


STEPS = st.lists(st.tuples(st.floats(0, 20), st.integers(0, 10)), min_size=1, max_size=40)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, rate=st.sampled_from([30, 60, 90, 600]))
def test_a_minute_has_no_more_than_the_rate_a_batch_and_two_seconds(channel, steps, rate):
    """Claims at any times, of which some do not call everybody: in every span of time, not only in
    a minute."""
    Batch.objects.all().delete()
    SendRate.objects.all().delete()
    Notification.objects.all().delete()
    notification = factories.make_notification(channel, rate_per_minute=rate)
    plan = factories.make_plan(notification, has_rate=True)
    send_rates.begin([notification.id])
    size = send_rates.batch_size(rate)
    now, calls = 0.0, []
    for seconds, uncalled in steps:
        now += seconds
        pass_time(seconds)
        while send_rates.lock_due(plan.id, "web"):
            send_rates.charge(notification.id, size)
            left = min(uncalled, size)
            send_rates.charge(notification.id, -left)
            calls.append((now, size - left))
            if left == size:
                break
    for index, (begin, _) in enumerate(calls):
        for end, _ in calls[index:]:
            within = sum(count for at, count in calls[index:] if at <= end)
            # A second for what the steps themselves take.
            assert within <= rate * (end - begin + 2 + 1) / 60 + size
    notification.delete()

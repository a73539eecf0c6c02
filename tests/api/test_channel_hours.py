"""How each hour changed a channel's totals, stored beside the totals."""

from datetime import UTC, timedelta

import pytest
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from channels_app.counters import channel_hours_merge, counter_add
from channels_app.models import ChannelHour
from channels_app.selectors import channel_totals
from notifications_app import retention
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import (
    GoneSubscription,
    subscription_unsubscribe,
    subscriptions_expire_or_prove,
)
from tests import factories
from tests.factories import make_channel
from tests.hours import stay_in_one_hour
from tests.pipeline.support import in_threads

TOKEN = "token-of-the-phone-{}"


@pytest.fixture
def channel(db):
    return make_channel(android_enabled=True)


def register(channel, number=1, **more):
    return factories.register(channel, "android", TOKEN.format(number), **more)


def sums(channel):
    names = ("android_gained", "android_lost", "notifications_sent")
    found = ChannelHour.objects.filter(channel=channel).aggregate(
        **{name: Sum(name, default=0) for name in names}
    )
    return tuple(found[name] for name in names)


def hour_ago(hours):
    return timezone.now().astimezone(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(
        hours=hours
    )


def test_a_device_that_subscribes_leaves_and_returns_is_gained_twice_and_lost_once(channel):
    register(channel)
    subscription_unsubscribe(channel=channel, address=Address.of("android", TOKEN.format(1)))
    register(channel)

    assert sums(channel) == (2, 1, 0)
    assert channel_totals(channel.id).android_subscribers == 1


def test_a_repeated_registration_changes_no_hour(channel):
    register(channel)
    register(channel)

    assert sums(channel) == (1, 0, 0)


def test_a_device_that_moves_to_another_address_is_neither_gained_nor_lost(channel):
    auth = {"auth": "its-own"}
    register(channel, 1, **auth)
    register(channel, 2, **auth)
    # Both addresses were known: one subscription is left.
    register(channel, 2, previous_endpoint=TOKEN.format(1), **auth)
    register(channel, 3, previous_endpoint=TOKEN.format(2), **auth)

    assert sums(channel) == (2, 1, 0)
    assert channel_totals(channel.id).android_subscribers == 1


def test_a_device_that_a_push_service_calls_gone_is_lost_in_that_hour(channel):
    gone = [register(channel, number) for number in range(3)]
    as_of = timezone.now() + timedelta(minutes=1)
    for _ in range(2):  # the second finds nothing
        subscriptions_expire_or_prove(
            channel_id=channel.id, gone=[GoneSubscription(each.id, as_of, "gone") for each in gone]
        )

    assert sums(channel) == (3, 3, 0)


def test_hours_and_totals_are_written_in_one_transaction(channel):
    with transaction.atomic():
        counter_add(channel.id, android_subscribers=5, notifications_sent=1)
        transaction.set_rollback(True)

    assert sums(channel) == (0, 0, 0)
    assert channel_totals(channel.id).android_subscribers == 0


def test_a_counter_without_hours_makes_no_row(channel):
    counter_add(channel.id, delivered=3)

    assert not ChannelHour.objects.filter(channel=channel).exists()


def test_merging_leaves_one_row_for_a_past_hour_and_the_same_sums(channel):
    stay_in_one_hour()
    for hours in (0, 1, 5, 6):
        for shard in range(4):
            ChannelHour.objects.create(
                channel=channel,
                hour=hour_ago(hours),
                shard=shard,
                android_gained=10 * shard + 1,
                android_lost=shard,
                notifications_sent=1,
            )
    before = sums(channel)

    retention.purge()

    assert sums(channel) == before
    rows = ChannelHour.objects.filter(channel=channel)
    assert {hours: rows.filter(hour=hour_ago(hours)).count() for hours in (0, 1, 5, 6)} == {
        0: 4,
        1: 4,
        5: 1,
        6: 1,
    }
    assert channel_hours_merge(100) == 0


@pytest.mark.django_db(transaction=True)
def test_concurrent_counts_lose_nothing_and_do_not_deadlock():
    channel = make_channel(android_enabled=True)

    def count():
        for _ in range(20):
            with transaction.atomic():
                counter_add(channel.id, android_subscribers=-1, delivered=1)
                counter_add(channel.id, notifications_sent=1)
            counter_add(channel.id, android_subscribers=2)

    in_threads(*[count] * 6)

    assert sums(channel) == (240, 120, 120)
    assert channel_totals(channel.id).android_subscribers == 120

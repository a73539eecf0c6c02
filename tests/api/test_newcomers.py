"""A device of which nothing is known is stored in one round trip, with the same locks as others."""

from threading import Event

import pytest
from django.db import transaction

from channels_app.counters import counter_add
from channels_app.models import Channel, ChannelHour
from channels_app.selectors import channel_totals
from channels_app.services import vapid_key_rotate
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address, address_lock
from subscriptions_app.devices.capacity import capacity_lock
from subscriptions_app.models import Subscription
from tests.api.devices import ANDROID_TOKEN, HERE
from tests.api.support import code
from tests.factories import browser, phone, register
from tests.pipeline.support import in_threads, until, waiting_sessions

pytestmark = pytest.mark.django_db


def test_a_new_device_takes_two_round_trips_after_its_channel(
    everywhere, django_assert_num_queries
):
    for body in (browser(HERE), phone("android", ANDROID_TOKEN), phone("ios", "a" * 64)):
        with django_assert_num_queries(3):
            assert everywhere.subscribe(body).status_code == 201


def test_a_new_device_is_counted_in_the_totals_and_in_the_hour(alice):
    alice.subscribe(browser(HERE))

    totals, hour = channel_totals(alice.channel.id), ChannelHour.objects.get()
    assert (totals.web_subscribers, totals.stored_subscriptions) == (1, 1)
    assert (hour.web_gained, hour.web_lost, hour.android_gained) == (1, 0, 0)


def test_a_new_device_gets_the_current_key_of_its_channel(alice, bob):
    new = vapid_key_rotate(channel=alice.channel)
    alice.subscribe(browser(HERE))
    assert Subscription.objects.get().vapid_key == new


@pytest.mark.django_db(transaction=True)
def test_simultaneous_registrations_of_one_device_make_one_subscription(alice):
    body = browser(HERE)

    answers = in_threads(*[lambda: alice.subscribe(body)] * 8)

    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["subscriptionId"] for answer in answers}) == 1
    assert channel_totals(alice.channel.id).web_subscribers == Subscription.objects.count() == 1


def while_it_waits(lock, act):
    """For `in_threads`: holds the lock until a registration waits for it, then acts and commits."""

    def run():
        with transaction.atomic():
            sql.rows("SELECT pg_advisory_xact_lock(hashtextextended(%(lock)s, 0))", {"lock": lock})
            is_held.set()
            until(waiting_sessions)
            act()

    is_held = Event()
    return run, is_held


def subscribing(owner, is_held, body):
    def run():
        assert is_held.wait(60)
        return owner.subscribe(body)

    return run


@pytest.mark.django_db(transaction=True)
def test_a_registration_that_waited_sees_who_registered_at_its_address(alice):
    body = browser(HERE)
    lock = address_lock(alice.channel.id, "web", Address.of("web", HERE).digest)
    hold, is_held = while_it_waits(
        lock, lambda: register(alice.channel, address=HERE, **body["keys"])
    )

    _, answer = in_threads(hold, subscribing(alice, is_held, body))

    assert answer.status_code == 200
    assert answer.json()["subscriptionId"] == str(Subscription.objects.get().id)


@pytest.mark.django_db(transaction=True)
def test_a_registration_that_waited_sees_that_the_channel_became_full(alice):
    most = int(sql.rows("SHOW max_connections", {})[0][0]) + 10
    Channel.objects.update(max_subscriptions=most)
    hold, is_held = while_it_waits(
        capacity_lock(alice.channel.id),
        lambda: counter_add(alice.channel.id, stored_subscriptions=most),
    )

    _, answer = in_threads(hold, subscribing(alice, is_held, browser(HERE)))

    assert code(answer, 503) == "subscriptions_full"
    assert not Subscription.objects.exists()

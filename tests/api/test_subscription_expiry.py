"""Expiry of subscriptions that push services call gone, and their deletion."""

from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from channels_app.selectors import channel_totals
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.selectors import delivery_devices
from subscriptions_app.devices.services import (
    GoneSubscription,
    expired_purge,
    subscription_unsubscribe,
    subscriptions_expire_or_prove,
)
from subscriptions_app.models import Subscription
from tests import factories, segments
from tests.factories import make_channel
from tests.pipeline.support import in_threads

pytestmark = pytest.mark.django_db
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def channel():
    return make_channel()


def register(channel, name="here"):
    return factories.register(channel, address=f"https://fcm.googleapis.com/fcm/send/{name}")


def gone(subscription, *, later=timedelta(0)):
    return GoneSubscription(subscription.id, subscription.registered_at + later, "endpoint_gone")


def expire(channel, *subscriptions):
    return subscriptions_expire_or_prove(channel_id=channel.id, gone=subscriptions)


def subscribers(channel):
    return channel_totals(channel.id).web_subscribers


def test_gone_subscriptions_expire_and_are_no_longer_counted(channel):
    first, second, third = (register(channel, name) for name in "abc")

    assert expire(channel, gone(first), gone(third, later=MICROSECOND)) == 2

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.expired_at is not None, first.expired_code) == (True, "endpoint_gone")
    assert second.expired_at is None
    assert subscribers(channel) == 1


@pytest.mark.django_db(transaction=True)
def test_two_sends_of_one_day_count_once_even_if_they_are_decided_at_the_same_time(channel):
    row = register(channel)
    unfound = GoneSubscription(row.id, row.registered_at, "name_not_found", sends=2)

    for _ in range(2):
        in_threads(*[partial(expire, channel, unfound)] * 2)
        row.refresh_from_db()
        assert (row.not_found_sends, row.expired_at) == (1, None)
    Subscription.objects.update(
        registered_at=Now() - timedelta(days=2), not_found_at=Now() - timedelta(days=1, seconds=1)
    )
    assert sorted(in_threads(*[partial(expire, channel, unfound)] * 2)) == [0, 1]

    row.refresh_from_db()
    assert row.expired_code == "name_not_found"
    assert subscribers(channel) == 0


def test_an_expiry_may_be_repeated_and_name_a_subscription_twice(channel):
    subscription = register(channel)
    assert expire(channel, gone(subscription), gone(subscription)) == 1
    first = Subscription.objects.get()
    assert expire(channel, gone(subscription)) == 0
    assert Subscription.objects.get().expired_at == first.expired_at
    assert subscribers(channel) == 0


def test_a_subscription_that_registered_again_since_stays_active(channel):
    before = register(channel)
    again = register(channel)
    assert again.registered_at > before.registered_at

    assert expire(channel, gone(before)) == 0
    assert expire(channel, gone(again, later=-MICROSECOND)) == 0
    assert subscribers(channel) == 1
    assert expire(channel, gone(again)) == 1


def test_expiring_none_or_an_unknown_subscription_changes_nothing(channel):
    assert expire(channel) == 0
    assert expire(channel, GoneSubscription(uuid7(), register(channel).registered_at, "x")) == 0
    assert subscribers(channel) == 1


def test_another_channels_subscription_stays_active(channel):
    subscription = register(make_channel(name="Bob's news"))
    assert expire(channel, gone(subscription)) == 0
    subscription.refresh_from_db()
    assert subscription.expired_at is None


@pytest.mark.django_db(transaction=True)
def test_simultaneous_expiry_unsubscribe_and_return_are_counted_exactly(channel):
    there = [register(channel, str(number)) for number in range(6)]
    calls = [
        lambda: expire(channel, *map(gone, there)),
        lambda: expire(channel, *map(gone, reversed(there))),
        *[lambda s=s: register(channel, s.address[-1]) for s in there[:3]],
        *[
            lambda s=s: subscription_unsubscribe(
                channel=channel, address=Address.of("web", s.address)
            )
            for s in there[2:5]
        ],
    ]

    in_threads(*calls)

    assert subscribers(channel) == Subscription.objects.filter(expired_at=None).count()


@pytest.mark.django_db(transaction=True)
def test_an_expiry_that_is_rolled_back_is_not_counted(channel):
    subscription = register(channel)
    with transaction.atomic():
        expire(channel, gone(subscription))
        transaction.set_rollback(True)
    assert subscribers(channel) == 1


def test_targets_hold_state_address_and_keys_of_subscriptions(channel):
    active, expired = register(channel, "a"), register(channel, "b")
    expire(channel, gone(expired))

    found = {target.id: target for target in delivery_devices([active.id, expired.id, uuid7()])}

    assert found.keys() == {active.id, expired.id}
    assert found[active.id].active
    assert not found[expired.id].active
    assert found[active.id].address == active.address
    assert (found[active.id].p256dh, found[active.id].auth) == (active.p256dh, active.auth)
    assert isinstance(found[active.id].vapid_key_id, UUID)
    assert found[active.id].registered_at == active.registered_at


def test_long_expired_subscriptions_are_deleted_oldest_first_in_steps(channel, settings):
    settings.SUBSCRIPTION_RETENTION_DAYS = 90
    rows = [register(channel, name) for name in "abcde"]
    for row, days in zip(rows, (91, 93, 92, 89, None), strict=True):
        expired_at = Now() - timedelta(days=days) if days else None
        Subscription.objects.filter(id=row.id).update(expired_at=expired_at)

    assert expired_purge(2) == 2
    assert not Subscription.objects.filter(id__in=[rows[1].id, rows[2].id]).exists()
    assert expired_purge(2) == 1
    assert expired_purge(2) == 0
    assert set(Subscription.objects.values_list("id", flat=True)) == {rows[3].id, rows[4].id}


@pytest.mark.django_db(transaction=True)
def test_deletion_does_not_wait_for_a_subscription_that_is_coming_back(channel):
    row = register(channel)
    Subscription.objects.update(expired_at=Now() - timedelta(days=365))
    with transaction.atomic():
        Subscription.objects.select_for_update().get(id=row.id)

        def purge():
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '2s'")
            return expired_purge(10)

        assert in_threads(purge) == [0]


@pytest.mark.parametrize("what", ["gone", "proven"])
def test_rows_are_looked_up_by_id_while_statistics_are_old(channel, what):
    """PostgreSQL takes a new channel for small, and would read it whole."""
    factories.add_crowd(make_channel(), 1_000)
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    factories.add_crowd(channel, 5_000)
    rows = Subscription.objects.filter(channel=channel)[:100]
    given = {
        "gone": {"gone": [gone(row) for row in rows]},
        "proven": {"gone": [], "proven": [row.id for row in rows]},
    }[what]

    (plan,) = segments.plans_of(
        lambda: subscriptions_expire_or_prove(channel_id=channel.id, **given)
    )

    assert "_pkey" in plan
    assert "_channel_id_" not in plan

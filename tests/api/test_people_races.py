"""Devices that are linked, expire and change at the same time, and people who are deleted."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now

from channels_app.selectors import channel_totals
from notifications_app import retention
from notifications_app.erasure import person_forget
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address, address_lock
from subscriptions_app.devices.services import (
    GoneSubscription,
    subscription_unsubscribe,
    subscriptions_expire_or_prove,
)
from subscriptions_app.models import MOST_DEVICES, Person, Subscription
from subscriptions_app.people.linking import devices_link
from subscriptions_app.people.proof import Login
from subscriptions_app.people.purge import LEFT_DAYS, TRUSTED_LEFT_DAYS, people_purge
from subscriptions_app.people.services import PersonChange, person_change
from tests.api.devices import HERE, THERE
from tests.factories import add_subscriptions, browser_keys, make_channel, register
from tests.pipeline.support import (
    assert_people_exact,
    in_threads,
    most_rows_read,
    stored_backwards,
    unlocked,
    until,
    waiting_sessions,
    waits_for,
)


@pytest.fixture
def channel(transactional_db):
    return make_channel(identity="trust")


@pytest.mark.django_db(transaction=True)
def test_sixteen_threads_link_one_device_to_two_people(channel):
    keys = browser_keys()

    def signs_in(number):
        register(channel, address=HERE, login=Login(f"user-{number % 2}"), **keys)

    in_threads(*[lambda number=number: signs_in(number) for number in range(16)])

    totals = channel_totals(channel.id)
    assert (totals.web_subscribers, totals.people, totals.linked_devices) == (1, 1, 1)
    assert Subscription.objects.get().person.external_id in ("user-0", "user-1")
    assert_people_exact(channel)


@pytest.mark.django_db(transaction=True)
def test_counts_stay_exact_while_everything_happens_at_once(channel):
    keys = [browser_keys() for _ in range(3)]
    rows = add_subscriptions(channel, 3)

    def act(number):
        person = f"user-{number % 3}"
        match number % 6:
            case 0 | 1:
                register(
                    channel, address=f"{HERE}{number % 3}", login=Login(person), **keys[number % 3]
                )
            case 2:
                subscription_unsubscribe(
                    channel=channel, address=Address.of("web", f"{HERE}{number % 2}")
                )
            case 3:
                devices_link(channel=channel, links={row.id: person for row in rows})
            case 4:
                gone = [GoneSubscription(row.id, row.registered_at, "gone") for row in rows[1:]]
                subscriptions_expire_or_prove(channel_id=channel.id, gone=gone)
            case _:
                devices_link(channel=channel, links={row.id: None for row in reversed(rows)})

    for start in range(3):
        in_threads(*[lambda number=number: act(number) for number in range(start, start + 12)])
        assert_people_exact(channel)


@pytest.mark.django_db(transaction=True)
def test_the_devices_of_a_person_whom_fakes_fill_sign_in_at_once(channel):
    own = [browser_keys() for _ in range(8)]
    for number in range(MOST_DEVICES):
        register(channel, address=f"{HERE}-fake-{number}", login=Login("user-1"))

    in_threads(
        *[
            lambda number=number, keys=keys: register(
                channel, address=f"{HERE}{number}", login=Login("user-1"), **keys
            )
            for number, keys in enumerate(own)
        ]
    )

    active = Subscription.objects.active().filter(person__external_id="user-1")
    assert active.filter(auth__in=[keys["auth"] for keys in own]).count() == len(own)
    assert active.count() == MOST_DEVICES
    assert_people_exact(channel)


@pytest.mark.django_db(transaction=True)
def test_a_sign_in_meanwhile_finds_that_its_person_was_deleted(channel):
    """It begins again, and makes the person anew."""
    (row,) = add_subscriptions(channel, 1)
    old = Person.objects.create(channel=channel, external_id="user-1")

    def delete_person():
        with transaction.atomic():
            Person.objects.filter(pk=old.pk).delete()
            until(waiting_sessions)

    def link():
        until(lambda: not sql.rows(_FREE, {"id": old.pk}))
        devices_link(channel=channel, links={row.id: "user-1"})

    in_threads(delete_person, link)

    person = Person.objects.get()
    assert person.pk != old.pk
    assert (person.external_id, person.active_devices) == ("user-1", 1)
    assert_people_exact(channel)


@pytest.mark.django_db(transaction=True)
def test_a_sign_in_meanwhile_finds_that_its_person_opted_out(channel):
    """It begins again, and the device ends."""
    keys = browser_keys()
    row = register(channel, address=HERE, **keys)
    person = Person.objects.create(channel=channel, external_id="user-1")

    def opt_out():
        with transaction.atomic():
            change = PersonChange(opted_out=True)
            person_change(channel=channel, external_id="user-1", change=change)
            until(waiting_sessions)

    def sign_in():
        until(lambda: not sql.rows(_FREE, {"id": person.pk}))
        register(channel, address=HERE, login=Login("user-1"), **keys)

    in_threads(opt_out, sign_in)

    row.refresh_from_db()
    assert (row.person_id, row.expired_code) == (person.pk, "opted_out")
    assert_people_exact(channel)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("direction", [1, -1])
def test_two_devices_that_swap_addresses_lock_them_in_one_order(channel, direction):
    first, second = pair = addresses_with_digests_in_order()
    old, new = pair[::direction]
    keys = browser_keys()
    register(channel, address=old, **keys)

    def move():
        register(channel, address=new, previous_endpoint=old, **keys)

    with waits_for(lambda: lock_address(channel, first), move):
        assert lock_address(channel, second)


@pytest.mark.django_db(transaction=True)
def test_a_device_that_changes_its_person_while_the_former_one_is_erased_stays(channel):
    (row,) = add_subscriptions(channel, 1)
    devices_link(channel=channel, links={row.id: "user-1"})

    with waits_for(
        lambda: devices_link(channel=channel, links={row.id: "user-2"}),
        lambda: person_forget(channel=channel, external_id="user-1"),
    ):
        pass

    assert Subscription.objects.get().person.external_id == "user-2"
    assert Person.objects.get().external_id == "user-2"
    assert_people_exact(channel)


def digest(address):
    return Address.of("web", address).digest


def addresses_with_digests_in_order():
    """Two, of which a set contains the second first."""
    for number in range(1000):
        addresses = sorted((f"{HERE}{number}", f"{THERE}{number}"), key=digest)
        first, second = map(digest, addresses)
        if list({first, second}) == list({second, first}) == [second, first]:
            return addresses
    raise AssertionError("each set of two has them in order")


def lock_address(channel, address):
    """As a registration of the address does. Whether no other session has the lock."""
    return sql.try_lock(address_lock(channel.pk, "web", digest(address)))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("direction", [1, -1])
def test_a_device_that_changes_its_person_locks_both_in_one_order(channel, direction):
    for name in ("user-1", "user-2"):
        Person.objects.create(channel=channel, external_id=name, left_at=Now())
    first, second = Person.objects.order_by("pk")
    before, after = [first, second][::direction]
    (row,) = add_subscriptions(channel, 1, person=before)
    stored_backwards(Person.objects.all())

    def link():
        devices_link(channel=channel, links={row.id: after.external_id})

    with waits_for(Person.objects.filter(pk=first.pk), link):
        assert unlocked(Person.objects.filter(pk=second.pk)) == [second.pk]
    assert_people_exact(channel)


_FREE = "SELECT FROM subscriptions_app_person WHERE id = %(id)s FOR UPDATE SKIP LOCKED"


def left(channel, name, **fields):
    values = {"left_at": Now() - timedelta(days=LEFT_DAYS + 1)} | fields
    return Person.objects.create(channel=channel, external_id=name, **values)


@pytest.mark.django_db
def test_people_without_devices_and_choices_are_deleted_after_ninety_days():
    channel = make_channel()
    gone = left(channel, "gone")
    kept = [
        left(channel, "left lately", left_at=Now() - timedelta(days=LEFT_DAYS - 1)),
        left(channel, "chose", choices={"offers": False}),
        left(channel, "opted out", opted_out_at=Now()),
        left(channel, "has an expired device"),
        left(channel, "active", left_at=None, active_devices=0),
    ]
    add_subscriptions(channel, 1, person=kept[3], expired_at=Now())

    retention.purge()

    assert set(Person.objects.all()) == set(kept)
    assert not Person.objects.filter(pk=gone.pk).exists()
    assert people_purge(10) == 0


@pytest.mark.django_db
def test_people_whom_any_device_can_make_are_deleted_after_an_hour(channel):
    left(channel, "gone", left_at=Now() - timedelta(days=TRUSTED_LEFT_DAYS, seconds=1))
    kept = [
        left(channel, "left lately", left_at=Now() - timedelta(days=TRUSTED_LEFT_DAYS) / 2),
        left(make_channel(), "proven", left_at=Now() - timedelta(days=LEFT_DAYS - 1)),
    ]

    assert people_purge(10) == 1

    assert set(Person.objects.all()) == set(kept)


@pytest.mark.django_db
def test_people_whose_expired_devices_are_kept_are_looked_at_once_a_day(channel):
    """Each minute, those are read who left some whole days ago."""
    devices = add_subscriptions(channel, 240, expired_at=Now())
    for number, device in enumerate(devices):
        ago = timedelta(days=2, minutes=13 * number + 10)
        device.person = left(channel, f"person {number}", left_at=Now() - ago)
        device.save(update_fields=["person"])
    gone = left(channel, "gone", left_at=Now() - timedelta(days=3, minutes=1))
    later = left(channel, "later", left_at=Now() - timedelta(days=3, hours=12))
    sql.execute("ANALYZE subscriptions_app_person, subscriptions_app_subscription", {})

    assert most_rows_read(lambda: people_purge(10), as_if_large=True) < len(devices) / 2

    assert not Person.objects.filter(pk=gone.pk).exists()
    assert Person.objects.filter(pk=later.pk).exists()
    Person.objects.filter(pk=later.pk).update(left_at=Now() - timedelta(days=3, minutes=1))
    assert people_purge(10) == 1

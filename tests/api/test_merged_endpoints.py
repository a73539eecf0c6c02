"""Rows that were stored before endpoints had a canonical form. Several may have one endpoint."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib import import_module

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models.functions import Now

from channels_app.selectors import channel_totals, stored_subscriptions
from pushsvc.common.endpoints import canonical_endpoint
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import address_digest, address_lock
from subscriptions_app.models import Person, Subscription, Tag, TestDevice
from tests import factories
from tests.api.devices import HERE
from tests.api.support import owner_of
from tests.api.test_canonical_endpoints import FORMS
from tests.factories import browser, make_channel
from tests.pipeline.support import (
    assert_people_exact,
    closing_connection,
    in_threads,
    until,
    waiting_sessions,
)

MIGRATION = import_module("subscriptions_app.migrations.0021_canonical_endpoints")
DAY = timedelta(days=1)

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    alice = owner_of(make_channel(android_enabled=True))
    yield alice
    assert_exact(alice.channel)


def assert_exact(channel):
    assert_people_exact(channel)
    rows = Subscription.objects.filter(channel=channel)
    assert (
        channel_totals(channel.id).web_subscribers
        == rows.filter(platform="web", expired_at=None).count()
    )
    assert stored_subscriptions(channel.id).counted == rows.count()


def merge():
    return MIGRATION.merge(connection)


def stored(channel, *each):
    """Rows as they were stored before: the address as it was given. Every row is one day older than
    the row before it."""
    fields = [
        {"address_sha256": address_digest(one["address"]), "auth": "hers", "created_at": Now()}
        | {"registered_at": Now() - number * DAY}
        | one
        for number, one in enumerate(each)
    ]
    return factories.add_each(channel, fields)


def row_at(address=HERE, **fields):
    return Subscription.objects.get(address=address, **fields)


ANY_FORM = [
    *FORMS,
    HERE,
    "https://fcm.googleapis.com",
    "https://fcm.googleapis.com?a=%2B%2d",
    "https://push.bücher.org/%4a%4A%7e",
    "http://push.lan:80/x",
    "http://push.lan:0443/x",
    "https://[0:0::1]:8443/%41%zz%2",
    "http://[::FFFF:1.2.3.4]:443/",
]


@pytest.mark.parametrize("url", ANY_FORM)
def test_the_migration_gives_the_form_that_registrations_use(url):
    assert MIGRATION.canonical(url) == canonical_endpoint(url)


@pytest.mark.parametrize("text", ["", "nonsense", "https://", "https://x:y/", "https://a@b/"])
def test_the_migration_leaves_what_is_no_endpoint(text):
    assert MIGRATION.canonical(text) is None
    assert canonical_endpoint(text) == text


@pytest.mark.parametrize("page", [1, 2, 100])
def test_every_row_gets_its_canonical_address_and_keeps_its_facts(alice, monkeypatch, page):
    monkeypatch.setattr(MIGRATION, "PAGE", page)
    written = [f"{form}/{number}" for number, form in enumerate([*FORMS, HERE, HERE])]
    rows = stored(alice.channel, *({"address": address} for address in written))
    factories.register(alice.channel, "android", "HTTPS://FCM:443")

    assert merge() == (len(FORMS), 0)
    assert merge() == (0, 0)

    for number, row in enumerate(rows):
        before = (row.id, row.auth, row.vapid_key_id, row.push_service, row.expired_at)
        row.refresh_from_db()
        assert before == (row.id, row.auth, row.vapid_key_id, row.push_service, row.expired_at)
        assert row.address == f"{HERE}/{number}"
        assert bytes(row.address_sha256) == address_digest(row.address)
    assert Subscription.objects.get(platform="android").address == "HTTPS://FCM:443"


EXPIRED = {"expired_at": Now(), "expired_code": "endpoint_gone"}


@pytest.mark.parametrize(
    ("newer", "older", "kept"),
    [
        ({}, {}, 0),
        ({}, EXPIRED, 0),
        (EXPIRED, {}, 1),
        (EXPIRED, EXPIRED, 0),
        ({"auth": "other"}, {}, 0),
        ({"auth": "other"} | EXPIRED, {}, 1),
    ],
)
@pytest.mark.parametrize(("one", "other"), [(HERE, FORMS[0]), (FORMS[0], HERE), FORMS[1:3]])
def test_an_active_row_stays_before_an_expired_one_and_a_newer_before_an_older(
    alice, newer, older, kept, one, other
):
    rows = stored(alice.channel, {"address": one} | newer, {"address": other} | older)
    is_active = rows[kept].expired_at is None

    merge()

    row = row_at(is_set_aside=False)
    assert (row.id, row.expired_at is None) == (rows[kept].id, is_active)
    assert bytes(row.address_sha256) == address_digest(HERE)


def test_the_row_that_stays_has_the_newest_facts_of_the_device(alice):
    factories.make_category(alice.channel)
    person = factories.make_person(alice.channel)
    person.choices = {"news": True}
    person.save()
    rows = stored(
        alice.channel,
        {"address": HERE, "language": "de", "attributes": {"plan": "pro"}},
        {
            "address": FORMS[0],
            "attributes": {"plan": "free"},
            "choices": {"news": False, "offers": True, "tips": True},
            "proven_choices": {"news": False, "offers": True},
            "is_proven": True,
        },
        {"address": FORMS[1], "person": person},
    )
    factories.add_tags(rows[1:2], "team-7")
    staff = User.objects.create(username="ada")
    factories.make_device(alice.channel, rows[1], staff)

    assert merge() == (2, 2)

    row = row_at()
    assert (row.id, row.attributes, row.language) == (rows[0].id, {"plan": "pro"}, "de")
    assert (row.person, row.choices, row.is_proven) == (person, {"tips": True}, True)
    assert row.proven_choices == {}
    assert Person.objects.get().choices == {"news": True, "offers": True}
    assert list(Tag.objects.values_list("subscription", "tag")) == [(row.id, "team-7")]
    assert TestDevice.objects.get().subscription_id == row.id


def test_an_expired_row_gives_the_attributes_if_it_is_newer(alice):
    newer = {"address": HERE, "attributes": {"plan": "pro"}} | EXPIRED
    stored(alice.channel, newer, {"address": FORMS[0], "attributes": {"plan": "free"}})
    merge()
    assert row_at(expired_at=None).attributes == {"plan": "pro"}


def test_rows_of_other_devices_give_nothing_and_the_oldest_is_set_aside(alice):
    person = factories.make_person(alice.channel)
    fields = {"attributes": {"plan": "pro"}, "person": person}
    rows = stored(
        alice.channel,
        {"address": HERE},
        {"address": FORMS[0], "auth": "second", "created_at": Now() - DAY} | fields,
        {"address": FORMS[1], "auth": "third", "created_at": Now() - 2 * DAY} | fields,
        {"address": FORMS[2], "auth": "fourth"} | fields,
    )

    assert merge() == (3, 2)

    row, aside = row_at(is_set_aside=False), row_at(is_set_aside=True)
    assert (row.id, row.attributes, row.person) == (rows[0].id, {}, None)
    assert (aside.id, aside.expired_code, aside.attributes) == (
        rows[2].id,
        "replaced",
        {"plan": "pro"},
    )


def test_rows_that_are_set_aside_meet_at_one_address(alice):
    aside = {"is_set_aside": True, "expired_at": Now(), "expired_code": "replaced"}
    rows = stored(
        alice.channel,
        {"address": HERE, "auth": "a"},
        {"address": FORMS[0], "auth": "b"},
        {"address": HERE, "auth": "c", "created_at": Now() - DAY} | aside,
        {"address": FORMS[0], "auth": "d"} | aside,
        {"address": f"{FORMS[1]}2", "auth": "e"} | aside,
    )

    assert merge() == (3, 2)

    assert row_at(is_set_aside=False).id == rows[0].id
    assert row_at(is_set_aside=True).id == rows[2].id
    assert not row_at(f"{HERE}2").is_set_aside  # it is alone


def test_a_browser_that_unsubscribed_later_in_another_form_stays_unsubscribed(alice):
    ended = {"expired_at": Now(), "expired_code": "unsubscribed"}
    rows = stored(alice.channel, {"address": HERE}, {"address": FORMS[0]} | ended)
    Subscription.objects.update(registered_at=Now() - DAY)

    merge()

    row = row_at()
    assert (row.id, row.expired_code) == (rows[0].id, "unsubscribed")


def test_a_browser_that_unsubscribed_before_its_last_visit_stays_active(alice):
    ended = {"expired_at": Now() - DAY, "expired_code": "unsubscribed"}
    stored(alice.channel, {"address": HERE}, {"address": FORMS[0]} | ended)
    merge()
    assert row_at().expired_at is None


def test_the_person_who_opted_out_takes_no_device_over(alice):
    person = factories.make_person(alice.channel)
    Person.objects.update(opted_out_at=Now())
    out = {"person": person, "expired_at": Now(), "expired_code": "opted_out"}
    stored(alice.channel, {"address": HERE}, {"address": FORMS[0]} | out)

    merge()

    row = row_at()
    assert (row.person, row.expired_at) == (None, None)


def test_a_persons_devices_are_counted_when_they_meet(alice):
    first, second = (factories.make_person(alice.channel, name) for name in ("one", "two"))
    rows = stored(
        alice.channel,
        {"address": HERE, "person": first},
        {"address": FORMS[0], "person": first},
        {"address": FORMS[1], "person": second},
    )

    merge()

    assert row_at().id == rows[0].id
    counts = dict(Person.objects.values_list("external_id", "active_devices"))
    assert counts == {"one": 1, "two": 0}
    assert Person.objects.get(external_id="two").left_at is not None


def test_other_channels_keep_their_own_rows(alice):
    bob = make_channel("Bob's news")
    stored(alice.channel, {"address": HERE})
    stored(bob, {"address": FORMS[0]})

    assert merge() == (1, 0)

    assert {row.channel for row in Subscription.objects.filter(address=HERE)} == {
        alice.channel,
        bob,
    }
    assert_exact(bob)


def test_the_command_merges_what_older_processes_stored_meanwhile(alice, capsys):
    stored(alice.channel, {"address": HERE}, {"address": FORMS[0]})
    call_command("merge_endpoints")
    printed = "1 endpoints changed, 1 subscriptions merged into others\n"
    assert capsys.readouterr().out == printed
    assert Subscription.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_merge_waits_for_a_registration_of_the_endpoint(alice):
    stored(alice.channel, {"address": FORMS[0]})
    lock = address_lock(alice.channel.id, Platform.WEB, address_digest(HERE))

    with ThreadPoolExecutor() as pool:
        with transaction.atomic():
            sql.rows("SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))", {"name": lock})
            merging = pool.submit(closing_connection(merge))
            until(lambda: waiting_sessions() == 1)
            (newcomer,) = stored(alice.channel, {"address": HERE})
        assert merging.result() == (1, 1)

    assert row_at().id == newcomer.id


@pytest.mark.django_db(transaction=True)
def test_browsers_subscribe_while_their_rows_are_merged(alice):
    bodies = [browser(f"{HERE}{number}") for number in range(20)]
    stored(
        alice.channel,
        *(
            {"address": f"{form}{number}", "auth": body["keys"]["auth"]}
            for number, body in enumerate(bodies)
            for form in FORMS[:2]
        ),
    )

    def visits():
        return {alice.subscribe(body).status_code for body in bodies}

    *answers, _, _ = in_threads(visits, visits, merge, merge)

    assert set().union(*answers) <= {200, 201}
    assert Subscription.objects.filter(expired_at=None).count() == 20
    assert set(Subscription.objects.values_list("address", flat=True)) == {
        body["endpoint"] for body in bodies
    }

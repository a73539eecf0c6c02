"""Devices that a backend links to people by the ids of their subscriptions."""

from datetime import timedelta
from uuid import uuid4

import pytest
from auditlog.models import LogEntry
from django.db.models.functions import Now

from channels_app.models import Channel
from subscriptions_app.models import MOST_DEVICES, Person, Subscription
from subscriptions_app.people.linking import MOST_LINKS
from tests.api.support import NOWHERE, code, errors, owner_of
from tests.factories import add_subscriptions, make_channel
from tests.pipeline.support import assert_people_exact

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel())


def link(owner, *links):
    body = {"links": [{"subscription_id": str(id_), "external_id": name} for id_, name in links]}
    return owner.call("POST", f"/channel/{owner.channel.id}/people/devices", body)


def linked(owner, *links):
    answer = link(owner, *links)
    assert answer.status_code == 200, answer.content
    return answer.json()


def people_of(rows):
    found = Subscription.objects.filter(pk__in=[row.pk for row in rows]).order_by("id")
    return list(found.values_list("person__external_id", flat=True))


def test_devices_are_linked_moved_and_unlinked(alice):
    one, two, three = add_subscriptions(alice.channel, 3)

    first = linked(alice, (two.id, "user-2"), (one.id, "user-1"), (three.id, "user-1"))
    assert first == {"linked": 3, "unknown": []}
    assert people_of([one, two, three]) == ["user-1", "user-2", "user-1"]
    assert_people_exact(alice.channel)

    linked(alice, (one.id, None), (two.id, "user-1"), (three.id, "user-1"))
    assert people_of([one, two, three]) == [None, "user-1", "user-1"]
    assert_people_exact(alice.channel)


def test_as_many_links_as_a_request_may_have_fit_into_a_body(alice):
    links = [(uuid4(), uuid4()) for _ in range(MOST_LINKS)]

    answer = linked(alice, *((device, str(user)) for device, user in links))

    assert answer == {"linked": 0, "unknown": [str(device) for device, _ in links]}


def test_unknown_ids_are_listed_and_do_not_hinder_others(alice):
    bob = owner_of(make_channel(name="Bob's news"))
    (mine,), (theirs,) = add_subscriptions(alice.channel, 1), add_subscriptions(bob.channel, 1)

    answer = linked(alice, (theirs.id, "user-1"), (mine.id, "user-1"), (NOWHERE, "user-2"))

    assert answer == {"linked": 1, "unknown": [str(theirs.id), NOWHERE]}
    assert people_of([mine]) == ["user-1"]
    assert people_of([theirs]) == [None]
    assert [person.external_id for person in Person.objects.all()] == ["user-1"]


def test_all_or_none_are_linked(alice):
    one, two = add_subscriptions(alice.channel, 2)
    linked(alice, (one.id, "user-1"))
    Person.objects.update(active_devices=MOST_DEVICES)

    refused = link(alice, (one.id, "user-2"), (two.id, "user-1"))
    assert refused.status_code == 200  # user-1 has one device less, and one more
    assert code(link(alice, (one.id, "user-1")), 409) == "too_many_devices"
    assert people_of([one, two]) == ["user-2", "user-1"]


def test_a_person_has_at_most_a_hundred_devices(alice):
    one, hundredth, next_one = add_subscriptions(alice.channel, 3)
    linked(alice, (one.id, "user-1"))
    Person.objects.update(active_devices=MOST_DEVICES - 1)

    linked(alice, (hundredth.id, "user-1"))

    assert code(link(alice, (next_one.id, "user-1")), 409) == "too_many_devices"
    assert people_of([one, hundredth, next_one]) == ["user-1", "user-1", None]


def test_a_backend_links_a_device_to_a_person_whom_fakes_fill_where_devices_are_trusted(alice):
    Channel.objects.update(identity="trust")
    alice.channel.refresh_from_db()
    *fakes, one, two = add_subscriptions(alice.channel, MOST_DEVICES + 2)
    linked(alice, *[(row.id, "user-1") for row in fakes])

    linked(alice, (one.id, "user-1"), (two.id, "user-1"), (fakes[0].id, "user-1"))

    assert people_of([fakes[0], one, two]) == ["user-1"] * 3
    assert not Subscription.objects.filter(pk__in=[fakes[1].pk, fakes[2].pk]).exists()
    assert_people_exact(alice.channel)


def test_expired_devices_are_linked_and_not_counted(alice):
    (row,) = add_subscriptions(alice.channel, 1, expired_at=Now(), expired_code="unsubscribed")

    assert linked(alice, (row.id, "user-1"))["linked"] == 1

    assert people_of([row]) == ["user-1"]
    assert_people_exact(alice.channel)


def test_a_device_ends_if_its_person_opted_out(alice):
    one, two = add_subscriptions(alice.channel, 2)
    (ended,) = add_subscriptions(
        alice.channel, 1, expired_at=Now() - timedelta(days=1), expired_code="unsubscribed"
    )
    ended.refresh_from_db()
    linked(alice, (one.id, "user-1"))
    linked(alice, (one.id, None))
    Person.objects.update(opted_out_at=Now())

    linked(alice, (two.id, "user-1"), (ended.id, "user-1"))

    two.refresh_from_db()
    assert (two.expired_code, people_of([two, ended])) == ("opted_out", ["user-1"] * 2)
    before = (ended.expired_at, ended.expired_code)
    ended.refresh_from_db()
    assert (ended.expired_at, ended.expired_code) == before
    assert_people_exact(alice.channel)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, ("links", "required")),
        ({"links": []}, ("links", "empty")),
        ({"links": [{"subscription_id": NOWHERE}]}, ("links.0.external_id", "required")),
        (
            {"links": [{"subscription_id": NOWHERE, "external_id": "null"}]},
            ("links.0.external_id", "reserved_value"),
        ),
        (
            {"links": [{"subscription_id": NOWHERE, "external_id": None}] * 2},
            ("links", "given_twice"),
        ),
        ({"links": [{}] * 1_001}, ("links", "too_many")),
    ],
)
def test_what_is_refused(alice, body, error):
    answer = alice.call("POST", f"/channel/{alice.channel.id}/people/devices", body)
    assert errors(answer) == [error]


def test_the_audit_log_has_one_entry_without_the_external_id(alice):
    (row,) = add_subscriptions(alice.channel, 1)
    for _ in range(2):
        linked(alice, (row.id, "user-secret"))

    notes = LogEntry.objects.filter(additional_data__note__startswith="Devices linked")
    (entry,) = notes
    assert entry.additional_data["channel"] == str(alice.channel.id)
    assert "user-secret" not in str(LogEntry.objects.values())

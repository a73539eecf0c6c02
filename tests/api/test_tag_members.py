"""Tags as the channel's owner changes them: members, the list, and deletion."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from auditlog.models import LogEntry
from django.db import transaction
from django.db.models.functions import Now

from channels_app.counters import counter_add
from notifications_app import retention
from subscriptions_app.models import Person, Subscription, Tag, TagRemoval
from subscriptions_app.tags import services
from subscriptions_app.tags.selectors import MOST_COUNTED
from subscriptions_app.tags.services import MAX_TAGS, deleted_tags_purge
from tests import factories
from tests.api.support import NOWHERE, code, errors, owner_of
from tests.pipeline.support import (
    closing_connection,
    in_threads,
    most_rows_read,
    until,
    waiting_sessions,
    waits_for,
)


def path(owner, *parts, query=""):
    return "/".join([f"/channel/{owner.channel.id}/tags", *map(str, parts)]) + query


def members(owner, tag, **body):
    answer = owner.call("POST", path(owner, tag, "members"), body)
    assert answer.status_code == 200, answer.content
    return answer.json()


def listed(owner, query=""):
    answer = owner.call("GET", path(owner, query=query))
    assert answer.status_code == 200, answer.content
    return answer


def tagged(tag):
    return set(Tag.objects.filter(tag=tag).values_list("subscription", flat=True))


@pytest.fixture
def person(alice):
    """A person with two active devices and one that has expired."""
    made = Person.objects.create(channel=alice.channel, external_id="user-42")
    factories.add_subscription(alice.channel, person=made, expired_at=Now())
    made.devices_active = factories.add_subscriptions(alice.channel, 2, person=made)
    return made


# --- members --------------------------------------------------------------------------------------


def test_the_devices_of_people_and_named_devices_get_the_tag(alice, bob, person):
    device = factories.add_subscription(alice.channel)
    foreign = factories.add_subscription(bob.channel)
    Person.objects.create(channel=bob.channel, external_id="bobs")

    answer = members(
        alice,
        "team-7",
        external_ids=["user-42", "bobs", "user-42"],
        subscription_ids=[str(device.id), str(foreign.id), NOWHERE],
    )

    assert answer == {
        "devices": 3,
        "full": 0,
        "unknown": {
            "external_ids": ["bobs"],
            "subscription_ids": [str(foreign.id), NOWHERE],
        },
    }
    assert tagged("team-7") == {device.id, *(row.id for row in person.devices_active)}


def test_the_tag_is_taken_off_all_devices_of_a_person(alice, person):
    everybody = [*person.devices_active, *Subscription.objects.filter(person=person)]
    factories.add_tags(list({row.id: row for row in everybody}.values()), "team-7", "other")

    answer = members(alice, "team-7", external_ids=["user-42"], remove=True)

    assert (answer["devices"], tagged("team-7"), len(tagged("other"))) == (3, set(), 3)


def test_a_repeated_request_changes_nothing(alice, person):
    for _ in range(2):
        assert members(alice, "team-7", external_ids=["user-42"])["devices"] == 2
    assert len(tagged("team-7")) == 2


def test_a_device_with_a_hundred_tags_does_not_keep_others_from_getting_one(alice):
    full, other = factories.add_subscriptions(alice.channel, 2)
    factories.add_tags([full], *(f"t{n}" for n in range(MAX_TAGS)))
    named = [str(full.id), str(other.id)]

    answer = members(alice, "team-7", subscription_ids=named)

    assert (answer["devices"], answer["full"], tagged("team-7")) == (1, 1, {other.id})
    assert members(alice, "t0", subscription_ids=named) | {"unknown": 0} == {
        "devices": 2,
        "full": 0,
        "unknown": 0,
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("", "empty")]),
        ({"external_ids": [], "subscription_ids": []}, [("", "empty")]),
        ({"external_ids": ["a"], "extra": 1}, [("extra", "unknown_field")]),
        ({"external_ids": "a"}, [("external_ids", "not_a_list")]),
        ({"external_ids": ["null"]}, [("external_ids.0", "reserved_value")]),
        ({"subscription_ids": ["x"]}, [("subscription_ids.0", "not_a_uuid")]),
        ({"external_ids": ["a"], "remove": "yes"}, [("remove", "not_a_boolean")]),
        ({"external_ids": [f"u{n}" for n in range(1001)]}, [("external_ids", "too_many")]),
        (
            {"external_ids": [f"u{n}" for n in range(1000)], "subscription_ids": [NOWHERE]},
            [("", "too_many")],
        ),
    ],
)
def test_what_names_nobody_or_too_many_is_refused(alice, body, expected):
    answer = alice.call("POST", path(alice, "team-7", "members"), body)
    assert errors(answer) == expected


@pytest.mark.parametrize("tag", ["a b", "%C3%A4", "x" * 65, "a%2Fb"])
def test_what_is_no_tag_is_not_found(alice, tag):
    assert code(alice.call("DELETE", path(alice, tag)), 404) == "not_found"


# --- the list -------------------------------------------------------------------------------------


def test_the_list_has_every_tag_of_the_channel_once_in_order(alice, bob):
    web = factories.add_subscriptions(alice.channel, 2)
    phone = factories.add_subscriptions(alice.channel, 1, platform="ios")
    factories.add_tags(web, "team-7", "Zebra")
    factories.add_tags(phone, "team-7", "team-9", "a")
    factories.add_tags(factories.add_subscriptions(bob.channel, 1), "bobs")

    assert listed(alice).json() == [
        {"tag": "Zebra", "devices": 2, "more": False},
        {"tag": "a", "devices": 1, "more": False},
        {"tag": "team-7", "devices": 3, "more": False},
        {"tag": "team-9", "devices": 1, "more": False},
    ]
    assert [each["tag"] for each in listed(alice, "?prefix=team-").json()] == ["team-7", "team-9"]
    assert listed(alice, "?prefix=team-8").json() == []


def test_pages_follow_one_another_by_their_links(alice):
    factories.add_tags(factories.add_subscriptions(alice.channel, 1), *"abcde", "b1", "b2")
    seen, query = [], "?limit=2&prefix="
    while query is not None:
        page = listed(alice, query)
        seen += [each["tag"] for each in page.json()]
        link = page.headers.get("Link")
        query = link and "?" + link.partition("?")[2].partition(">")[0]
    assert seen == ["a", "b", "b1", "b2", "c", "d", "e"]
    page = listed(alice, "?limit=2&prefix=b")
    assert "prefix=b&after=b1" in page.headers["Link"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?prefix=%C3%A4", [("prefix", "not_a_tag")]),
        (f"?after={'x' * 65}", [("after", "not_a_tag")]),
        ("?after=%00", [("after", "not_a_tag")]),
        ("?limit=0", [("limit", "out_of_range")]),
    ],
)
def test_odd_bounds_of_the_list_are_refused(alice, query, expected):
    assert errors(alice.call("GET", path(alice, query=query))) == expected


def test_devices_are_counted_up_to_a_thousand_and_no_further(alice, monkeypatch):
    monkeypatch.setattr("subscriptions_app.tags.selectors.MOST_COUNTED", 3)
    factories.add_tags(factories.add_subscriptions(alice.channel, 3), "three")
    factories.add_tags(factories.add_subscriptions(alice.channel, 1_500), "many")
    counts = {each["tag"]: (each["devices"], each["more"]) for each in listed(alice).json()}
    assert counts == {"three": (3, False), "many": (3, True)}
    assert MOST_COUNTED == 1_000
    assert most_rows_read(lambda: listed(alice), as_if_large=True) < 20


# --- deletion -------------------------------------------------------------------------------------


def test_housekeeping_takes_a_deleted_tag_off_in_steps(alice, bob):
    rows = factories.add_subscriptions(alice.channel, 5)
    factories.add_tags(rows, "old", "new")
    factories.add_tags(factories.add_subscriptions(bob.channel, 1), "old")

    answer = alice.call("DELETE", path(alice, "old"))

    assert (answer.status_code, answer.content) == (202, b"")
    assert alice.call("DELETE", path(alice, "old")).status_code == 202
    assert len(tagged("old")) == 6
    assert [deleted_tags_purge(2) for _ in range(4)] == [2, 2, 1, 0]
    assert Tag.objects.filter(tag="old").get().channel_id == bob.channel.id
    assert len(tagged("new")) == 5
    assert not TagRemoval.objects.exists()
    assert code(alice.call("DELETE", path(alice, "old")), 404) == "not_found"


@pytest.mark.django_db(transaction=True)
def test_a_tag_that_is_deleted_again_while_its_deletion_ends_is_deleted_again():
    alice = owner_of(factories.make_channel())
    rows = factories.add_subscriptions(alice.channel, 2)
    factories.add_tags(rows[:1], "old")
    alice.call("DELETE", path(alice, "old"))
    answers = []

    def delete_again():
        factories.add_tags(rows[1:], "old")
        answers.append(alice.call("DELETE", path(alice, "old")).status_code)

    with waits_for(lambda: deleted_tags_purge(10), delete_again):
        pass

    assert answers == [202]
    assert deleted_tags_purge(10) == 1
    assert not Tag.objects.exists()


def test_housekeeping_is_part_of_retention(alice):
    factories.add_tags(factories.add_subscriptions(alice.channel, 2), "old")
    alice.call("DELETE", path(alice, "old"))
    retention.purge()
    assert not Tag.objects.exists()


def test_a_deletion_whose_devices_are_gone_ends(alice):
    rows = factories.add_subscriptions(alice.channel, 1)
    factories.add_tags(rows, "old")
    alice.call("DELETE", path(alice, "old"))
    Subscription.objects.filter(id=rows[0].id).delete()
    counter_add(alice.channel.id, web_subscribers=-1, stored_subscriptions=-1)
    assert services.deleted_tags_purge(10) == 0
    assert not TagRemoval.objects.exists()


# --- who may --------------------------------------------------------------------------------------


def test_the_audit_log_has_changes_by_a_key_without_the_ids_of_people(alice, person):
    members(alice, "team-7", external_ids=["user-42"])
    alice.call("DELETE", path(alice, "team-7"))
    notes = [entry.additional_data["note"] for entry in LogEntry.objects.order_by("id")][-2:]
    assert notes == ["The tag team-7 was added to 2 devices.", "The tag team-7 was deleted."]


@pytest.mark.django_db(transaction=True)
def test_a_tag_is_taken_off_after_changes_of_its_devices_that_came_first(transactional_db):
    """Both lock the devices before their tags. Otherwise two changes could deadlock."""
    owner = owner_of(factories.make_channel())
    (row,) = factories.add_subscriptions(owner.channel, 1)
    held = threading.Event()

    def change():
        with transaction.atomic():
            Subscription.objects.filter(pk=row.pk).locked_by_id().get()
            held.set()
            until(waiting_sessions)
            services.device_tags_change(row.pk, services.TagChange(added=["team-7"]))

    def take_off():
        assert held.wait(60)
        members(owner, "team-7", subscription_ids=[str(row.pk)], remove=True)

    in_threads(change, take_off)

    assert tagged("team-7") == set()


@pytest.mark.django_db(transaction=True)
def test_a_device_that_is_deleted_meanwhile_is_missing_and_not_full():
    owner = owner_of(factories.make_channel())
    gone, stays = factories.add_subscriptions(owner.channel, 2)
    named = [str(gone.id), str(stays.id)]

    def put_on():
        return members(owner, "team-7", subscription_ids=named)

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            gone.delete()
            answered = pool.submit(closing_connection(put_on))
            until(waiting_sessions)
        answer = answered.result(timeout=60)

    assert (answer["devices"], answer["full"]) == (1, 0)
    assert answer["unknown"]["subscription_ids"] == [named[0]]

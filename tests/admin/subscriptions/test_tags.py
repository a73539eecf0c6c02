"""The tags of a channel in the console: listed with counts, found, and deleted by managers."""

import json

import pytest
from django.urls import reverse

from subscriptions_app.models import TagRemoval
from tests.admin.support import signed_in
from tests.factories import add_subscriptions, add_tags


def page_of(house):
    return reverse("admin:channel_tags", args=[house.channel.pk])


def listed(answer):
    return [(each.tag, each.devices) for each in answer.context["listed"]]


@pytest.fixture
def tags(alice, bob):
    rows = add_subscriptions(alice.channel, 3)
    add_tags(rows, "team-7")
    add_tags(rows[:1], "match-1", "Zebra")
    add_tags(add_subscriptions(bob.channel, 1), "bobs")


def test_every_member_sees_the_tags_with_their_devices(alice, tags):
    client = signed_in(alice.members["viewer"])
    page = client.get(page_of(alice))
    assert listed(page) == [("Zebra", 1), ("match-1", 1), ("team-7", 3)]
    assert "Delete" not in page.content.decode()
    assert listed(client.get(page_of(alice), {"prefix": "team"})) == [("team-7", 3)]
    assert listed(client.get(page_of(alice), {"prefix": "a b", "after": "\x00"})) == []


def test_more_than_a_page_is_reached_by_the_next_page(alice):
    add_tags(add_subscriptions(alice.channel, 1), *(f"t{n:03}" for n in range(60)))
    client = signed_in(alice.members["viewer"])
    first = client.get(page_of(alice), {"prefix": "t"})
    second = client.get(page_of(alice), {"prefix": "t", "after": first.context["following"]})
    assert len(listed(first)) == 50
    assert [tag for tag, _ in listed(first) + listed(second)] == [f"t{n:03}" for n in range(60)]
    assert "First page" in second.content.decode()
    assert "Next page" not in second.content.decode()


def test_tags_are_looked_up_by_what_they_begin_with(alice, bob, tags):
    path = reverse("admin:tag_names", args=[alice.channel.pk])
    client = signed_in(alice.members["viewer"])

    def found(**query):
        return client.get(path, query).json()["tags"]

    assert found() == found(prefix="") == ["Zebra", "match-1", "team-7"]
    assert found(prefix="te") == ["team-7"]
    assert [found(prefix=each) for each in ("T", "a b", "\x00", "~", "b")] == [[]] * 5
    add_tags(add_subscriptions(alice.channel, 1), *(f"t{n:03}" for n in range(30)))
    assert found(prefix="t") == [f"t{n:03}" for n in range(20)]
    assert signed_in(bob.members["owner"]).get(path).status_code == 404


def test_a_manager_deletes_a_tag(alice, tags):
    answer = signed_in(alice.members["manager"]).post(page_of(alice), {"tag": "team-7"})
    assert answer.url == page_of(alice)
    removal = TagRemoval.objects.get()
    assert (removal.channel_id, removal.tag) == (alice.channel.pk, "team-7")


@pytest.mark.parametrize(
    ("role", "tag", "status"), [("editor", "team-7", 403), ("owner", "x", 404)]
)
def test_nobody_else_deletes_and_nothing_else_is_deleted(alice, tags, role, tag, status):
    answer = signed_in(alice.members[role]).post(page_of(alice), {"tag": tag})
    assert answer.status_code == status
    assert not TagRemoval.objects.exists()


def test_the_preview_of_a_segment_counts_the_devices_of_a_tag(alice, tags):
    rule = {"all": [{"tag": "team-7"}, {"not": {"tag": "match-1"}}]}
    address = reverse("admin:segment_preview", args=[alice.channel.pk])
    answer = signed_in(alice.members["viewer"]).post(address, {"rule": json.dumps(rule)})
    assert answer.context["total"] == 2
    assert answer.context["words"] == "has the tag team-7 and not (has the tag match-1)"

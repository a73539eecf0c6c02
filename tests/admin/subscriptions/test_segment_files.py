"""A segment from a file of user ids: who may, whose channel, and what its requests respond. The
browser's side is in tests/browser/console/test_segment_files.py."""

import json

import pytest
from django.urls import reverse

from subscriptions_app.models import MAX_SEGMENT_NAME, Segment, Tag, TagRemoval
from subscriptions_app.people.linking import devices_link
from tests.admin.support import signed_in
from tests.factories import add_subscriptions, add_tags

pytestmark = pytest.mark.django_db

NAMES = ("", "_look", "_part")


def address(house, name=""):
    return reverse(f"admin:segment_file{name}", args=[house.channel.pk])


def send_part(client, house, *ids, tag="vip"):
    body = json.dumps({"tag": tag, "external_ids": ids})
    return client.post(address(house, "_part"), body, content_type="application/json")


def step(client, house, name="VIPs", tag="vip", step="check", **more):
    return client.post(address(house), {"name": name, "tag": tag, "step": step, **more})


@pytest.fixture
def people(alice):
    """Ann has two devices, and Bea has one."""
    devices = add_subscriptions(alice.channel, 3)
    owners = ("ann", "ann", "bea")
    links = {one.pk: id_ for one, id_ in zip(devices, owners, strict=True)}
    devices_link(channel=alice.channel, links=links)
    return devices


@pytest.mark.parametrize("role", ["viewer", "sender"])
def test_only_editors_make_segments_of_files(alice, people, role):
    client = signed_in(alice.members[role])
    for name in NAMES:
        ask = client.post if name else client.get
        assert ask(address(alice, name)).status_code == 403
    assert step(client, alice, step="create").status_code == 403
    assert send_part(client, alice, "ann").status_code == 403
    assert not Tag.objects.exists()
    assert not Segment.objects.exists()


def test_the_channel_of_another_account_is_not_found(alice, bob, people):
    client = signed_in(bob.members["owner"])
    for name in NAMES:
        ask = client.post if name else client.get
        assert ask(address(alice, name)).status_code == 404
    assert step(client, alice, step="create").status_code == 404
    assert send_part(client, alice, "ann").status_code == 404
    assert not Tag.objects.exists()


def test_the_devices_of_known_people_get_the_tag_and_unknown_ids_are_returned(alice, people):
    client = signed_in(alice.members["editor"])
    found = send_part(client, alice, "ann", "zoe", "ann", "null").json()
    assert found == {"devices": 2, "full": 0, "unknown": ["zoe", "null"]}
    tagged = set(Tag.objects.filter(tag="vip").values_list("subscription_id", flat=True))
    assert tagged == {people[0].pk, people[1].pk}


def test_the_segment_selects_the_devices_with_the_tag(alice, people):
    client = signed_in(alice.members["editor"])
    assert step(client, alice).json() == {}
    send_part(client, alice, "bea")
    assert not Segment.objects.exists()

    answer = step(client, alice, step="create").json()

    segment = Segment.objects.get()
    assert (segment.channel, segment.name, segment.rule) == (alice.channel, "VIPs", {"tag": "vip"})
    assert answer == {"url": reverse("admin:subscriptions_app_segment_change", args=[segment.pk])}


def test_errors_are_returned_by_field_before_anything_is_stored(alice, people):
    client = signed_in(alice.members["editor"])
    Segment.objects.create(channel=alice.channel, name="VIPs", rule={"tag": "x"})
    add_tags(people[:1], "used")
    TagRemoval.objects.create(channel_id=alice.channel.pk, tag="gone")

    def errors(**form):
        answer = step(client, alice, **form)
        assert answer.status_code in {400, 409}
        return answer.json()["errors"]

    assert errors(name="") == {"name": f"Must have 1 to {MAX_SEGMENT_NAME} characters."}
    assert errors() == {"name": "Another segment of the channel has this name."}
    assert errors(step="create") == {"name": "Another segment of the channel has this name."}
    wrong_tag = "Enter a tag: letters, digits and _ . : - without blanks."
    assert errors(name="New", tag="a b") == {"tag": wrong_tag}
    assert set(errors(name="", tag="")) == {"name", "tag"}
    assert "already" in errors(name="New", tag="used")["tag"]
    assert step(client, alice, name="New", tag="used", extend="on").json() == {}
    assert "removed" in errors(name="New", tag="gone", extend="on")["tag"]
    assert set(errors(name="New", step="other")) == {""}
    assert Segment.objects.count() == 1


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '{"tag": "a b", "external_ids": ["ann"]}',
        '{"tag": "vip", "external_ids": ["ann", 5]}',
        '{"tag": "vip", "external_ids": ["\\u0000"]}',
        json.dumps({"tag": "vip", "external_ids": ["ann"] * 1_001}),
    ],
)
def test_another_body_is_refused(alice, people, body):
    client = signed_in(alice.members["editor"])
    answer = client.post(address(alice, "_part"), body, content_type="application/json")
    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == {""}
    assert not Tag.objects.exists()


def test_the_columns_of_a_file_are_guessed(alice):
    client = signed_in(alice.members["editor"])
    path = f"{address(alice, '_look')}?format=tokens_csv"
    found = client.post(path, "name;user_id\nAnn;4711\n", content_type="text/csv").json()
    assert (found["separator"], found["first_line"]) == (";", 2)
    assert [(each["means"], each["samples"]) for each in found["columns"]] == [
        ("", ["Ann"]),
        ("external_id", ["4711"]),
    ]


def test_the_form_of_a_new_segment_leads_to_the_file(alice):
    client = signed_in(alice.members["editor"])
    page = client.get(reverse("admin:segment_new", args=[alice.channel.pk]))
    assert address(alice) in page.content.decode()

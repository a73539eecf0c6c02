"""Categories over the API: create, change, archive, and name one in a send."""

import pytest
from auditlog.models import LogEntry

from channels_app.selectors import recent_forget
from notifications_app.content.values import Content
from notifications_app.sends.services import notification_test
from subscriptions_app.categories import services
from subscriptions_app.categories.services import MAX_CATEGORIES
from subscriptions_app.models import Category, Subscription
from tests.api.support import accepted, code, errors
from tests.factories import add_each, add_subscription, make_category, make_segment
from tests.pipeline.support import in_threads
from tests.segments import attribute

OFFERS = {"key": "offers", "name": "Offers", "description": "At most weekly", "default": False}


def path(owner, *parts):
    return "/".join([f"/channel/{owner.channel.id}/categories", *parts])


def created(owner, **fields):
    response = owner.call("POST", path(owner), OFFERS | fields)
    assert response.status_code == 201, response.content
    return response.json()


def require_category(owner):
    path = f"/channel/{owner.channel.id}/delivery-settings"
    assert owner.call("PUT", path, {"category_required": True}).status_code == 200


def listed(owner, query=""):
    response = owner.call("GET", path(owner) + query)
    assert response.status_code == 200, response.content
    return response.json()


# --- create, change, archive ----------------------------------------------------------------------


def test_a_category_reads_back_as_it_was_created(alice):
    category = created(alice)

    names = ["key", "name", "description", "default", "position", "created_at"]
    assert list(category) == names
    assert category == OFFERS | {"position": 0, "created_at": category["created_at"]}
    assert listed(alice) == [category]


def test_lists_are_in_the_order_of_positions(alice):
    for key in ("a", "b", "c"):
        created(alice, key=key)
    created(alice, key="first", position=0)

    assert [each["key"] for each in listed(alice)] == ["a", "first", "b", "c"]
    assert [each["key"] for each in listed(alice, "?limit=2&offset=1")] == ["first", "b"]


def test_a_change_keeps_the_key_and_the_position(alice):
    category = created(alice, position=4)
    changed = {"name": "Sales", "description": "", "default": True}

    response = alice.call("PUT", path(alice, "offers"), changed)

    assert response.status_code == 200
    assert response.json() == category | changed
    assert listed(alice) == [category | changed]
    assert errors(alice.call("PUT", path(alice, "offers"), OFFERS)) == [("key", "unknown_field")]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"key": "Offers"}, ("key", "malformed")),
        ({"key": "a" * 33}, ("key", "malformed")),
        ({"key": ""}, ("key", "blank")),
        ({"key": 1}, ("key", "not_a_string")),
        ({"name": ""}, ("name", "blank")),
        ({"name": "n" * 101}, ("name", "too_long")),
        ({"description": "d" * 256}, ("description", "too_long")),
        ({"default": "yes"}, ("default", "not_a_boolean")),
        ({"default": None}, ("default", "null")),
        ({"position": -1}, ("position", "out_of_range")),
        ({"other": 1}, ("other", "unknown_field")),
    ],
)
def test_an_error_is_named(alice, fields, error):
    assert errors(alice.call("POST", path(alice), OFFERS | fields)) == [error]
    assert listed(alice) == []


def test_a_key_is_taken_once(alice, bob):
    created(alice)
    assert code(alice.call("POST", path(alice), OFFERS), 409) == "category_key_taken"
    assert created(bob)["key"] == "offers"


@pytest.mark.django_db(transaction=True)
def test_a_channel_has_a_limited_number_of_categories(alice):
    for number in range(MAX_CATEGORIES - 1):
        make_category(alice.channel, f"c{number}")

    def create(key):
        return alice.call("POST", path(alice), OFFERS | {"key": key}).status_code

    assert sorted(in_threads(lambda: create("x"), lambda: create("y"))) == [201, 400]
    assert errors(alice.call("POST", path(alice), OFFERS)) == [("key", "too_many")]
    assert len(listed(alice)) == MAX_CATEGORIES


def test_a_channel_has_a_limited_number_of_archived_categories(alice, monkeypatch):
    assert services.MAX_ARCHIVED == 200
    monkeypatch.setattr(services, "MAX_ARCHIVED", 2)
    for key in ("a", "b"):
        created(alice, key=key)
        alice.call("DELETE", path(alice, key))

    full = alice.call("POST", path(alice), OFFERS)

    assert errors(full) == [("key", "too_many")]
    assert created(alice, key="a")["key"] == "a"


def test_an_archived_category_is_gone_but_for_its_choices(alice):
    created(alice)
    device = add_subscription(alice.channel, choices={"offers": True})

    assert alice.call("DELETE", path(alice, "offers")).status_code == 204

    assert listed(alice) == []
    for method, body in [("DELETE", None), ("PUT", {"name": "a", "default": True})]:
        assert alice.call(method, path(alice, "offers"), body).status_code == 404
    assert Subscription.objects.get(pk=device.pk).choices == {"offers": True}
    assert created(alice, name="Back")["name"] == "Back"
    assert Category.objects.count() == 1


def test_changes_are_in_the_audit_log(alice):
    created(alice)
    alice.call("PUT", path(alice, "offers"), {"name": "Sales", "default": False})
    alice.call("DELETE", path(alice, "offers"))

    entries = LogEntry.objects.filter(content_type__model="category").order_by("pk")

    assert [each.get_action_display() for each in entries] == ["create", "update", "update"]
    assert entries[1].changes["name"] == ["Offers", "Sales"]
    assert set(entries[2].changes) == {"archived_at"}
    assert {each.additional_data["via"] for each in entries} == {"api"}


# --- a send ---------------------------------------------------------------------------------------


def test_a_send_keeps_the_category(alice):
    created(alice)

    notification = accepted(alice, {"body": "Bread", "category": "offers"})

    assert notification.category == "offers"
    details = alice.call("GET", f"/notification/{notification.id}/details").json()
    assert details["audience"]["category"] == "offers"
    assert details["left_out"] == {"opted_out": 0, "capped": 0, "repeated": 0}


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_send_must_name_a_category_that_the_channel_has(alice, bob, dry_run):
    created(bob)
    created(alice, key="gone")
    alice.call("DELETE", path(alice, "gone"))
    for key in ("offers", "gone", "no such"):
        response = alice.send({"body": "Bread", "category": key, "dry_run": dry_run})
        assert errors(response) == [("category", "category_unknown")]
        assert response.json()["code"] == "category_unknown"


def test_a_channel_can_require_a_category(alice):
    created(alice)
    require_category(alice)
    recent_forget()
    segment = make_segment(alice.channel, attribute("plan", "eq", "pro"))
    for body in ({"body": "Bread"}, {"body": "Bread", "segment_id": str(segment.id)}):
        assert code(alice.send(body), 400) == "category_required"
        assert code(alice.send(body | {"dry_run": True}), 400) == "category_required"
        assert accepted(alice, body | {"category": "offers"}).category == "offers"


def test_a_test_message_needs_no_category(alice):
    require_category(alice)
    alice.channel.refresh_from_db()
    device = add_subscription(alice.channel)

    test = notification_test(
        channel=alice.channel, content=Content(body="x", ttl=60), subscription_id=device.id
    )

    assert test.category == ""


def test_a_send_to_targets_needs_no_category_also_when_it_is_edited(alice):
    require_category(alice)
    recent_forget()
    later = {"scheduled_at": "2999-01-01T00:00:00Z"}
    notification = accepted(alice, {"body": "Bread", "external_ids": ["ada"]} | later)

    response = alice.call("PATCH", f"/notification/{notification.id}", {"body": "Buns"})

    assert response.status_code == 200, response.content


def test_an_edit_can_change_the_category(alice):
    created(alice)
    created(alice, key="news")
    later = {"scheduled_at": "2999-01-01T00:00:00Z"}
    notification = accepted(alice, {"body": "Bread", "category": "offers"} | later)
    address = f"/notification/{notification.id}"

    def now():
        notification.refresh_from_db()
        return notification.category

    assert alice.call("PATCH", address, {"body": "Rolls"}).status_code == 200
    assert now() == "offers"
    assert alice.call("PATCH", address, {"category": "news"}).status_code == 200
    assert now() == "news"
    assert code(alice.call("PATCH", address, {"category": "none"}), 400) == "category_unknown"
    assert alice.call("PATCH", address, {"category": None}).status_code == 200
    assert now() == ""


def test_a_dry_run_counts_those_who_want_it(alice):
    created(alice)
    chosen = [{"choices": choices} for choices in ({}, {"offers": True}, {"offers": False})]
    add_each(alice.channel, chosen * 2)

    def audience(**fields):
        answer = alice.send({"body": "x", "dry_run": True} | fields).json()
        return answer["platforms"]["web"]["audience"]

    assert audience() == 6
    assert audience(category="offers") == 2
    alice.call("PUT", path(alice, "offers"), {"name": "Offers", "default": True})
    assert audience(category="offers") == 4

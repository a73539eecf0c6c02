"""PATCH /notification/:id over HTTP, and `expires_at` of a send. What an edit does to a send that
is running is for tests/pipeline/test_editing.py."""

from datetime import timedelta

import pytest
from auditlog.models import LogEntry
from django.test import Client
from django.utils import timezone

from notifications_app.models import Notification
from tests import openapi
from tests.api.support import NOWHERE, accepted, code, errors, may_be_null, owner_of
from tests.factories import make_segment

pytestmark = pytest.mark.django_db
LATER = "2031-01-02T03:04:05.000Z"
LATEST = "2031-01-02T04:00:00.000Z"
EVERYTHING = {
    "title": "Bakery",
    "body": "Fresh bread",
    "url": "https://shop.example/",
    "icon": "https://shop.example/icon.png",
    "image": "https://shop.example/bread.png",
    "data": {"zebra": "1", "apple": "2"},
    "ttl": 60,
    "urgency": "high",
    "topic": "bread",
    "actions": [{"id": "buy", "title": "Buy"}],
    "web": {"tag": "bread"},
    "android": {"sound": "ding"},
    "ios": {"badge": 1},
    "translations": {"de": {"body": "Frisches Brot"}},
    "personalize": True,
    "on_missing": "bounce",
    "vars": {"shop": "Bakery"},
    "variants": [{"name": "a", "weight": 1, "title": "A"}, {"name": "b", "weight": 2}],
    "target_platforms": ["web"],
    "scheduled_at": LATER,
    "expires_at": LATEST,
}
RULE = {"attribute": "plan", "operator": "eq", "value": "pro"}


def edit(owner, notification, **changes):
    return owner.call("PATCH", f"/notification/{notification.id}", changes)


def details(owner, notification):
    return owner.call("GET", f"/notification/{notification.id}/details").json()


def read(owner, notification):
    return owner.call("GET", f"/notification/{notification.id}").json()


def shown(owner, notification):
    """The fields of the send, as the service tells them."""
    found = details(owner, notification)
    times = {name: found["timing"][name] for name in ("scheduled_at", "expires_at")}
    return found["content"] | times | {"target_platforms": list(found["platforms"])}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("title", "Café"),
        ("body", "Warm bread"),
        ("url", "https://shop.example/new"),
        ("icon", "https://shop.example/new.png"),
        ("image", "https://shop.example/warm.png"),
        ("data", {"b": "1", "a": "2"}),
        ("ttl", 0),
        ("urgency", "low"),
        ("topic", "cafe"),
        ("actions", [{"id": "order", "title": "Order"}]),
        ("web", {"dir": "rtl"}),
        ("android", {"count": 0}),
        ("ios", {"title": None}),
        ("translations", {"fr": {"title": "Pain"}}),
        ("on_missing", "empty"),
        ("vars", {"shop": "Corner"}),
        ("variants", [{"name": "c", "weight": 5}, {"name": "d", "weight": 1, "body": "D"}]),
        ("target_platforms", ["android", "web"]),
        ("scheduled_at", "2031-01-02T03:30:00.000Z"),
        ("expires_at", "2031-01-03T00:00:00.000Z"),
    ],
)
def test_a_field_of_a_pending_notification_changes_and_the_others_stay(alice, name, value):
    alice.channel.android_enabled = True
    alice.channel.save()
    notification = accepted(alice, EVERYTHING)

    answer = edit(alice, notification, **{name: value})

    assert answer.status_code == 200, answer.content
    assert answer.json() == read(alice, notification)
    assert shown(alice, notification) == EVERYTHING | {name: value}
    assert list(shown(alice, notification)["data"]) == list((EVERYTHING | {name: value})["data"])
    assert details(alice, notification)["edited_at"] is not None


def test_null_takes_a_field_s_default(alice):
    notification = accepted(alice, EVERYTHING)
    unset = dict.fromkeys(EVERYTHING.keys() - {"body", "scheduled_at"})

    assert edit(alice, notification, **unset).status_code == 200

    texts = dict.fromkeys(("title", "url", "icon", "image", "topic"), "")
    kept = {name: EVERYTHING[name] for name in ("body", "scheduled_at", "target_platforms")}
    defaults = {"data": {}, "ttl": 259_200, "urgency": "normal", "expires_at": None}
    defaults |= {"actions": [], "web": {}, "android": {}, "ios": {}, "translations": {}}
    defaults |= {"personalize": False, "on_missing": "empty", "vars": {}, "variants": []}
    assert shown(alice, notification) == texts | kept | defaults


def test_without_a_time_it_is_sent_at_once(alice):
    notification = accepted(alice, {"body": "Fresh bread", "scheduled_at": LATER})
    assert edit(alice, notification, scheduled_at=None).status_code == 200
    notification.refresh_from_db()
    assert notification.scheduled_at <= timezone.now()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"body": None}, [("body", "required")]),
        ({"body": "x" * 256, "ttl": "1"}, [("body", "too_long"), ("ttl", "not_a_number")]),
        ({"dry_run": True}, [("dry_run", "unknown_field")]),
        ({"bdoy": None}, [("bdoy", "unknown_field")]),
        ({"expires_at": LATER}, [("expires_at", "out_of_range")]),
        ({"scheduled_at": "2032-01-01T00:00:00Z"}, [("expires_at", "out_of_range")]),
        ({"target_platforms": ["ios"]}, []),
        ({"data": {"a": "x" * 4000}}, [("variants.0", "payload_too_large")]),
    ],
)
def test_what_a_send_may_not_be_no_edit_makes_of_it(alice, changes, found):
    notification = accepted(alice, EVERYTHING)
    before = shown(alice, notification)

    response = edit(alice, notification, **changes)

    assert set(errors(response)) >= set(found)
    assert shown(alice, notification) == before
    assert details(alice, notification)["edited_at"] is None


def test_the_body_of_the_request_is_an_object(alice):
    notification = accepted(alice, EVERYTHING)
    response = alice.call("PATCH", f"/notification/{notification.id}", ["body"])
    assert errors(response) == [("", "not_an_object")]
    assert code(alice.call("PATCH", f"/notification/{notification.id}"), 400) == "malformed_json"


def test_the_kind_of_audience_stays(alice, bob):
    segment, other = (make_segment(alice.channel, RULE, name=name) for name in ("one", "other"))
    theirs = make_segment(bob.channel, RULE)
    to_all = accepted(alice, {"body": "x", "scheduled_at": LATER})
    to_some = accepted(alice, {"body": "x", "scheduled_at": LATER, "segment_id": str(segment.id)})

    for notification, value in ((to_all, str(segment.id)), (to_some, None)):
        response = edit(alice, notification, segment_id=value)
        assert errors(response) == [("segment_id", "not_combinable")]
    assert edit(alice, to_all, segment_id=None, body="y").status_code == 200
    assert edit(alice, to_some, body="y").json()["segment_id"] == str(segment.id)
    assert edit(alice, to_some, segment_id=str(other.id)).json()["segment_id"] == str(other.id)
    for missing in (NOWHERE, str(theirs.id)):
        assert errors(edit(alice, to_some, segment_id=missing)) == [
            ("segment_id", "segment_not_found")
        ]


@pytest.mark.parametrize("status", ["processing", "sent", "failed", "cancelled"])
def test_what_is_being_sent_or_over_is_not_editable(alice, status):
    notification = accepted(alice, EVERYTHING)
    Notification.objects.update(status=status, started_at=timezone.now())
    response = edit(alice, notification, body="Too late")
    assert code(response, 409) == "not_editable"
    assert status in response.json()["detail"]
    assert shown(alice, notification)["body"] == "Fresh bread"


def test_only_a_key_that_may_send_and_read_may_edit(alice):
    notification = accepted(alice, EVERYTHING)
    reader = owner_of(alice.channel, scopes=["read", "manage"])
    sender = owner_of(alice.channel, scopes=["send"])
    assert code(edit(reader, notification, body="x"), 403) == "missing_scope"
    errors(Client().patch(f"/notification/{notification.id}"), 401)
    for changes in ({}, {"body": "x"}):  # the answer shows what `read` protects
        assert code(edit(sender, notification, **changes), 403) == "missing_scope"
    assert Notification.objects.get(pk=notification.id).body == notification.body
    both = owner_of(alice.channel, scopes=["send", "read"])
    assert edit(both, notification, body="x").status_code == 200


def test_an_edit_enters_the_audit_log_with_before_and_after(alice):
    notification = accepted(alice, EVERYTHING)
    edit(alice, notification, body="Warm bread", data={})
    (entry,) = LogEntry.objects.filter(object_pk=str(notification.pk))
    assert entry.changes == {"body": ["Fresh bread", "Warm bread"]}
    assert entry.additional_data["via"] == "api"
    assert entry.additional_data["note"] == "Edited: body, data."


@pytest.mark.parametrize("names", [[], ["body", "data", "ttl", "target_platforms"], EVERYTHING])
def test_an_edit_that_changes_nothing_is_none(alice, names):
    notification = accepted(alice, EVERYTHING)
    answer = edit(alice, notification, **{name: EVERYTHING[name] for name in names})
    assert answer.json() == read(alice, notification)
    assert details(alice, notification)["edited_at"] is None
    assert not LogEntry.objects.filter(object_pk=str(notification.pk)).exists()


def test_the_order_of_data_is_a_change_that_the_audit_log_only_names(alice):
    notification = accepted(alice, EVERYTHING)
    edit(alice, notification, data={"apple": "2", "zebra": "1"})
    assert list(shown(alice, notification)["data"]) == ["apple", "zebra"]
    (entry,) = LogEntry.objects.filter(object_pk=str(notification.pk))
    assert (entry.changes, entry.additional_data["note"]) == ({}, "Edited: data.")


def paused(owner, notification, **fields):
    """Its platform is disabled and its `expires_at` is over, since it was paused."""
    past = timezone.now() - timedelta(minutes=5)
    Notification.objects.filter(pk=notification.pk).update(
        paused_at=past, expires_at=past, **fields
    )
    owner.channel.web_enabled = False
    owner.channel.save()


def test_what_is_fixed_does_not_keep_a_paused_text_from_being_edited(alice):
    notification = accepted(alice, EVERYTHING)
    hour_ago = timezone.now() - timedelta(hours=1)
    paused(alice, notification, status="processing", scheduled_at=hour_ago, started_at=hour_ago)

    assert edit(alice, notification, body="Warm bread").status_code == 200
    assert shown(alice, notification)["body"] == "Warm bread"
    over = edit(alice, notification, expires_at="2001-01-01T00:00:00Z")
    assert errors(over) == [("expires_at", "out_of_range")]
    large = edit(alice, notification, data={"a": "x" * 4000})
    assert errors(large) == [("variants.0", "payload_too_large")]


def test_the_platforms_of_a_pending_notification_are_checked_again(alice):
    notification = accepted(alice, EVERYTHING)
    paused(alice, notification)
    assert errors(edit(alice, notification, body="Warm bread")) == [
        ("target_platforms", "platform_not_enabled")
    ]
    alice.channel.web_enabled = True
    alice.channel.save()
    assert edit(alice, notification, body="Warm bread").status_code == 200


def test_the_api_s_document_says_what_may_be_null():
    schemas = openapi.document()["components"]["schemas"]
    fields = schemas["EditInput"]["properties"]
    refused = [name for name in fields if not may_be_null(fields[name], schemas)]
    assert refused == ["body"]
    assert "Another segment" in fields["segment_id"]["description"]


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    "times",
    [
        {"expires_at": "2001-01-01T00:00:00Z"},
        {"expires_at": LATER, "scheduled_at": LATER},
        {"expires_at": LATER, "scheduled_at": LATEST},
    ],
)
def test_a_send_does_not_expire_before_it_is_due(alice, times, dry_run):
    response = alice.send({"body": "x", "dry_run": dry_run} | times)
    assert errors(response) == [("expires_at", "out_of_range")]


def test_no_edit_of_a_send_by_local_time_lets_it_expire_before_its_first_release(alice):
    given = {"local_at": "2031-01-02T20:00", "expires_at": "2031-01-02T21:00:00Z"}
    notification = accepted(alice, {"body": "x"} | given)

    later = edit(alice, notification, quiet_hours={"from": "19:00", "to": "22:00"})

    assert errors(later) == [("expires_at", "out_of_range")]
    assert edit(alice, notification, quiet_hours="ignore").status_code == 200


def test_a_send_tells_when_it_expires(alice):
    notification = accepted(alice, {"body": "x", "expires_at": "2031-01-02T05:04:05+01:00"})
    assert shown(alice, notification)["expires_at"] == "2031-01-02T04:04:05.000Z"
    assert alice.send({"body": "x", "expires_at": LATER, "dry_run": True}).status_code == 200

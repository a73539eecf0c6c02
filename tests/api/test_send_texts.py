"""POST /send-notification: what each field accepts, and the errors of what it refuses."""

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.models import Notification
from notifications_app.sends.schema import SendBody
from pushsvc.common.blank_text import is_blank
from pushsvc.common.ids import uuid7
from tests.api.support import accepted, errors
from tests.api.templates import CONTENT

pytestmark = pytest.mark.django_db


def details_of(owner, notification):
    return owner.call("GET", f"/notification/{notification.id}/details").json()


URL = "https://shop.example/"
COMBINED = "e\u0301"  # two code points


@pytest.mark.parametrize(
    "fields",
    [
        {"body": "x" * 255, "title": "x" * 100},
        {"body": "😀" * 255, "title": "😀" * 100},
        {"body": COMBINED * 127 + "x", "title": COMBINED * 50},
        {"body": " . ", "title": ""},
        {"body": "\u2028\u202e\x1f👩\u200d🚀", "title": "\ufeff\u0301\u0600"},
        {"body": "x", "url": URL + "x" * (2000 - len(URL))},
        {"body": "x", "topic": "t" * 32},
        {"body": "x", "ttl": 28 * 24 * 3600},
    ],
)
def test_texts_of_the_greatest_length_are_stored_as_sent(alice, fields):
    row = accepted(alice, fields)
    assert {name: getattr(row, name) for name in fields} == fields


LONG_URL = URL + "x" * (2001 - len(URL))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [("body", "required")]),
        ({"title": "x"}, [("body", "required")]),
        ({"body": None}, [("body", "null")]),
        ({"body": ""}, [("body", "blank")]),
        ({"body": 5}, [("body", "not_a_string")]),
        ({"body": ["x"]}, [("body", "not_a_string")]),
        ({"body": {"x": "y"}}, [("body", "not_a_string")]),
        ({"body": True}, [("body", "not_a_string")]),
        ({"body": "x" * 256}, [("body", "too_long")]),
        ({"body": "😀" * 256}, [("body", "too_long")]),
        ({"body": COMBINED * 128}, [("body", "too_long")]),
        ({"body": "x", "title": "x" * 101}, [("title", "too_long")]),
        ({"body": "x", "title": 0}, [("title", "not_a_string")]),
        ({"body": "x", "url": "shop.example"}, [("url", "not_a_url")]),
        ({"body": "x", "url": "javascript:alert(1)"}, [("url", "not_a_url")]),
        ({"body": "x", "url": "https://"}, [("url", "not_a_url")]),
        ({"body": "x", "url": "//shop.example"}, [("url", "not_a_url")]),
        ({"body": "x", "url": "https://shop.example/ x"}, [("url", "not_a_url")]),
        ({"body": "x", "url": LONG_URL}, [("url", "too_long")]),
        ({"body": "x", "icon": "data:image/png;base64,AA"}, [("icon", "not_a_url")]),
        ({"body": "x", "segment_id": "x"}, [("segment_id", "not_a_uuid")]),
        ({"body": "x", "segment_id": uuid7().hex}, [("segment_id", "not_a_uuid")]),
        ({"body": "x", "segment_id": 1}, [("segment_id", "not_a_string")]),
        ({"body": "x", "target_platforms": []}, [("target_platforms", "empty")]),
        ({"body": "x", "target_platforms": "web"}, [("target_platforms", "not_a_list")]),
        ({"body": "x", "target_platforms": ["web", "t"]}, [("target_platforms.1", "not_a_choice")]),
        ({"body": "x", "target_platforms": ["WEB"]}, [("target_platforms.0", "not_a_choice")]),
        ({"body": "x", "target_platforms": [None]}, [("target_platforms.0", "null")]),
        ({"body": "x", "target_platforms": [1]}, [("target_platforms.0", "not_a_string")]),
        ({"body": "x", "data": []}, [("data", "not_an_object")]),
        ({"body": "x", "data": {"a": 1}}, [("data.a", "not_a_string")]),
        ({"body": "x", "ttl": -1}, [("ttl", "out_of_range")]),
        ({"body": "x", "ttl": 28 * 24 * 3600 + 1}, [("ttl", "out_of_range")]),
        ({"body": "x", "ttl": 10**300}, [("ttl", "out_of_range")]),
        ({"body": "x", "ttl": 5.0}, [("ttl", "not_a_number")]),
        ({"body": "x", "ttl": "5"}, [("ttl", "not_a_number")]),
        ({"body": "x", "ttl": True}, [("ttl", "not_a_number")]),
        ({"body": "x", "urgency": "urgent"}, [("urgency", "not_a_choice")]),
        ({"body": "x", "topic": "t" * 33}, [("topic", "not_a_topic")]),
        ({"body": "x", "topic": "a b"}, [("topic", "not_a_topic")]),
        ({"body": "x", "topic": "é"}, [("topic", "not_a_topic")]),
        ({"body": "x", "dry_run": 1}, [("dry_run", "not_a_boolean")]),
        ({"body": "x", "dry_run": "false"}, [("dry_run", "not_a_boolean")]),
        ({"body": "x", "schedule_at": "2031-01-01T00:00Z"}, [("schedule_at", "unknown_field")]),
        ({"body": "x", "channel_id": str(uuid7())}, [("channel_id", "unknown_field")]),
        ({"tilte": "x", "title": 1}, [("title", "not_a_string"), ("body", "required"),
                                      ("tilte", "unknown_field")]),
    ],
)  # fmt: skip
def test_every_error_is_named_and_nothing_is_stored(alice, fields, expected):
    response = alice.send(fields)
    assert errors(response) == expected
    assert response.json()["code"] == "validation_error"
    assert not Notification.objects.exists()


UNSEEN = [
    " ",
    "\t\r\n",
    "\u200b",
    "\ufeff\u2060",
    "\u00a0\u3000",
    "\u3164",
    "\u2800",
    "\u202e\u200f",
]
UNSEEN += ["\x1f", "\u00ad", "\ufe0f", "\U000e0041"]
PLACES = {
    "body": lambda text: {"body": text},
    "title": lambda text: {"title": text},
    "web.body": lambda text: {"web": {"body": text}},
    "android.title": lambda text: {"android": {"title": text}},
    "ios.subtitle": lambda text: {"ios": {"subtitle": text}},
    "actions.0.title": lambda text: {"actions": [{"id": "a", "title": text}]},
    "translations.de.title": lambda text: {"translations": {"de": {"title": text}}},
    "translations.de.body": lambda text: {"translations": {"de": {"body": text}}},
}


@pytest.mark.parametrize("text", UNSEEN, ids=ascii)
@pytest.mark.parametrize("attr", PLACES)
def test_a_text_that_shows_nothing_is_blank(alice, attr, text):
    assert errors(alice.send({"body": "x"} | PLACES[attr](text))) == [(attr, "blank")]
    assert not Notification.objects.exists()


# All fields that are not needed.
OPTIONAL = sorted(SendBody().fields.keys() - {"body"})


def test_null_and_what_the_details_have_for_nothing_are_no_value(alice):
    bare = accepted(alice, {"body": "x"})
    nothing = details_of(alice, bare)["content"]
    assert (nothing["icon"], nothing["topic"], nothing["actions"]) == ("", "", [])

    for each in (dict.fromkeys(OPTIONAL), nothing):
        row = accepted(alice, {"body": "x"} | each)
        assert details_of(alice, row)["content"] == nothing
        assert (row.target_platforms, row.category) == (bare.target_platforms, "")
    assert accepted(alice, {"body": "x", "category": ""}).category == ""


def test_the_details_of_a_notification_can_be_sent_again(alice):
    each = CONTENT | {"web": {"title": None, "silent": True}, "personalize": True}
    each |= {"vars": {"a": 1}, "on_missing": "bounce"}
    content = details_of(alice, accepted(alice, each))["content"]

    again = accepted(alice, content)

    assert details_of(alice, again)["content"] == content
    listed = alice.call("GET", f"/notification/{again.id}").json()
    names = ("title", "body", "icon", "url", "scheduled_at", "target_platforms", "segment_id")
    assert alice.send({name: listed[name] for name in names}).status_code == 202


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"web": {"badge": None, "title": None, "lang": None}}, {"web": {"title": None}}),
        ({"android": {"color": None, "visibility": None}}, None),
        ({"ios": {"sound": {"name": "a", "volume": None}}}, {"ios": {"sound": {"name": "a"}}}),
        ({"ios": {"subtitle": None, "badge": 1}}, {"ios": {"badge": 1}}),
        ({"ios": {"sound": None, "badge": None}}, {"ios": {"sound": None}}),
        (
            {"actions": [{"id": "a", "title": "A", "url": None, "icon": None}]},
            {"actions": [{"id": "a", "title": "A"}]},
        ),
        (
            {"translations": {"de": {"title": None, "actions": None}, "fr": None}},
            {"translations": {"de": {}}},
        ),
    ],
)
def test_null_is_no_value_inside_of_a_field(alice, given, stored):
    assert accepted(alice, {"body": "x"} | given).extras == stored


def test_null_is_no_value_in_a_map(alice):
    given = {"data": {"a": None, "b": ""}, "vars": {"a": None, "b": 1}, "personalize": True}
    own = [{"external_id": "ada", "subscription_id": None, "vars": None}]
    row = accepted(alice, {"body": "x", "targets": own} | given)
    assert (row.data, row.vars) == ({"b": ""}, {"b": 1})


BLANKS = st.text(st.characters(categories=["Cc", "Zs", "Zl", "Zp"]))


@given(BLANKS, st.characters(categories=["Lu", "Ll", "N", "P", "Sc", "Sm"]), BLANKS)
def test_one_letter_or_sign_among_blanks_is_seen(before, sign, after):
    assert is_blank(before + after)
    assert not is_blank(before + sign + after)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b'"x"',
        b"null",
        b"{",
        b'{"body": "x"} {}',
        b'{"body": "x", "body": "y"}',
        b'{"body": "a\\u0000b"}',
        b'{"body": "\\ud83d"}',
        b'{"body": "x", "data": {"\\udc00": "x"}}',
        b'{"body": "x", "ttl": NaN}',
        b'{"body": "x", "ttl": 1e400}',
        b'{"body": "x", "ttl": ' + b"9" * 5000 + b"}",
        b'{"body": "\xff"}',
        b'{"body": "x", "data": ' + b"[" * 30 + b"]" * 30 + b"}",
    ],
)
def test_a_body_that_is_no_storable_json_object_is_refused(alice, raw):
    response = Client().post(
        "/send-notification",
        raw,
        content_type="application/json",
        headers={"Authorization": f"Key {alice.key}"},
    )
    errors(response, 400)
    assert not Notification.objects.exists()

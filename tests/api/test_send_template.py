"""Sends that name a template."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from notifications_app.models import IdempotencyRecord, Notification, Template
from pushsvc.common.ids import uuid7
from tests import openapi
from tests.api.support import accepted, anonymous, code, errors, may_be_null, owner_of
from tests.api.templates import CONTENT, LATER, created, path
from tests.factories import make_template


def content_of(owner, notification):
    details = owner.call("GET", f"/notification/{notification.id}/details").json()
    return details["template_id"], details["content"]


def test_a_send_that_names_a_template_says_what_the_same_fields_say(alice):
    template = created(alice)["template_id"]

    named, written = accepted(alice, {"template_id": template}), accepted(alice, CONTENT)

    of_named, of_written = content_of(alice, named), content_of(alice, written)
    assert (of_named[0], of_written[0]) == (template, None)
    assert json.dumps(of_named[1]) == json.dumps(of_written[1])
    assert list(named.content.data) == list(CONTENT["data"])


def test_each_field_of_the_send_replaces_the_templates(alice):
    template = created(alice)["template_id"]
    given = {"title": "", "data": {"b": "1"}, "ttl": 60, "ios": {"subtitle": "Now"}, "web": {}}

    notification = accepted(alice, {"template_id": template} | given)

    _, content = content_of(alice, notification)
    kept = {name: CONTENT[name] for name in CONTENT.keys() - given.keys()}
    without = {"icon": "", "image": "", "topic": "", "vars": {}, "variants": []}
    assert content == kept | given | without | {"personalize": False, "on_missing": "empty"}


# What takes each field of a template away.
NOTHING = {
    "title": "",
    "url": "",
    "icon": "",
    "image": "",
    "data": {},
    "topic": "",
    "actions": [],
    "web": {},
    "android": {},
    "ios": {},
    "translations": {},
    "vars": {},
    "variants": [],
}
FULL = CONTENT | {
    "icon": "https://shop.example/icon.png",
    "image": "https://shop.example/image.png",
    "topic": "orders",
    "translations": {"pt-BR": {"title": "Seu pedido"}},
    "personalize": True,
    "vars": {"sale": "20 %"},
    "variants": [{"name": "a", "weight": 1, "title": "A"}, {"name": "b", "weight": 9}],
}


@pytest.mark.parametrize("name", NOTHING)
def test_null_takes_a_field_of_the_template_away_and_leaves_the_others(alice, name):
    template = str(make_template(alice.channel, content=FULL).id)
    _, whole = content_of(alice, accepted(alice, {"template_id": template}))
    assert all(whole[each] == FULL[each] for each in NOTHING)

    _, content = content_of(alice, accepted(alice, {"template_id": template, name: None}))

    assert content == whole | {name: NOTHING[name]}


def test_what_every_send_has_cannot_be_taken_away(alice):
    kept = {"ttl": 60, "urgency": "high", "personalize": True, "on_missing": "bounce"}
    template = str(make_template(alice.channel, content=FULL | kept).id)
    assert errors(alice.send({"template_id": template, "body": None})) == [("body", "null")]

    _, content = content_of(alice, accepted(alice, {"template_id": template} | dict.fromkeys(kept)))

    assert {name: content[name] for name in kept} == kept


def test_the_api_s_document_says_what_null_takes_away():
    schemas = openapi.document()["components"]["schemas"]
    fields = schemas["SendInput"]["properties"]
    assert [name for name in fields if not may_be_null(fields[name], schemas)] == ["body"]


def test_using_a_template_needs_only_the_scope_to_send(alice):
    template = created(alice)["template_id"]
    sender = owner_of(alice.channel, scopes=["send"])
    assert accepted(sender, {"template_id": template.upper()}).body == CONTENT["body"]


@pytest.mark.parametrize("extra", [{}, {"dry_run": True}])
@pytest.mark.parametrize("once", [{}, {"Idempotency-Key": "a"}])
def test_a_template_of_another_channel_or_a_deleted_one_is_refused(alice, bob, extra, once):
    theirs, gone = created(bob)["template_id"], created(alice)["template_id"]
    alice.call("DELETE", path(alice, gone))
    answers = [
        alice.send({"body": "x", "template_id": template} | extra, **once)
        for template in (theirs, gone, str(uuid7()))
    ]
    for answer in answers:
        assert errors(answer) == [("template_id", "template_not_found")]
        assert answer.json()["code"] == "template_not_found"
    assert anonymous(answers[0]) == anonymous(answers[1]) == anonymous(answers[2])
    assert not Notification.objects.exists()
    assert not IdempotencyRecord.objects.exists()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"template_id": "x"}, [("template_id", "not_a_uuid")]),
        ({"template_id": 5}, [("template_id", "not_a_string")]),
        ({"template_id": None}, [("body", "required")]),
        ({"title": "x"}, [("body", "required")]),
    ],
)
def test_without_a_template_a_body_is_needed(alice, body, expected):
    assert errors(alice.send(body)) == expected


def test_a_template_without_a_body_leaves_it_to_the_send(alice):
    template = make_template(alice.channel, content={"title": "Sale"}).id
    assert errors(alice.send({"template_id": str(template)})) == [("body", "required")]
    assert accepted(alice, {"body": "x", "template_id": None}).template_id is None
    sent = accepted(alice, {"template_id": str(template), "body": "20 % off"})
    assert (sent.title, sent.body) == ("Sale", "20 % off")


def test_what_the_send_and_the_template_say_together_is_judged(alice):
    template = created(alice)["template_id"]
    other = [{"id": "buy", "title": "Buy"}]
    assert errors(alice.send({"template_id": template, "actions": other})) == [
        ("translations.pt-BR.actions.track", "unknown_field")
    ]


def test_the_size_is_that_of_template_and_send_together(alice):
    template = make_template(alice.channel, content={"data": {"a": "x" * 3_000}}).id
    body = {"template_id": str(template), "body": "x"}
    alone = alice.send(body | {"dry_run": True}).json()["platforms"]["web"]["payload_bytes"]

    fits = {"url": "https://shop.example/" + "u" * (3_993 - alone - 35)}
    dry = alice.send(body | fits | {"dry_run": True})
    size = dry.json()["platforms"]["web"]["payload_bytes"]
    fits["url"] += "u" * (3_993 - size)
    accepted(alice, body | fits)

    fits["url"] += "u"
    for refused in (alice.send(body | fits), alice.send(body | fits | {"dry_run": True})):
        assert errors(refused) == [("target_platforms", "payload_too_large")]


def test_an_edit_names_no_template(alice):
    template = created(alice)["template_id"]
    sent = accepted(alice, {"template_id": template, "scheduled_at": LATER})

    address = f"/notification/{sent.id}"
    refused = alice.call("PATCH", address, {"template_id": template})
    assert errors(refused) == [("template_id", "unknown_field")]
    assert alice.call("PATCH", address, {"title": "x"}).status_code == 200
    kept, content = content_of(alice, sent)
    assert (kept, content["title"], content["body"]) == (template, "x", CONTENT["body"])


def test_what_was_accepted_is_as_the_template_was(alice):
    template = created(alice)["template_id"]
    sent = accepted(alice, {"template_id": template, "scheduled_at": LATER})
    before = content_of(alice, sent)

    alice.call("PUT", path(alice, template), {"name": "x", "content": {"body": "Other"}})
    assert content_of(alice, sent) == before
    alice.call("DELETE", path(alice, template))
    assert content_of(alice, sent) == before


@pytest.mark.parametrize("change", ["edit", "delete"])
def test_a_repeated_send_gets_its_first_answer_after_the_template_changed(alice, change):
    template = created(alice)["template_id"]
    once = {"Idempotency-Key": "a"}
    body = {"template_id": template, "body": "x", "actions": CONTENT["actions"]}
    first = alice.send(body, **once)
    if change == "delete":
        alice.call("DELETE", path(alice, template))
    else:
        content = {"translations": {"de": {"actions": {"buy": "Kaufen"}}}, "actions": []}
        Template.objects.update(content_json=json.dumps(content))

    assert first.status_code == 202
    assert alice.send(body, **once).content == first.content
    assert Notification.objects.count() == 1
    other = alice.send(body | {"body": "y"}, **once)
    assert code(other, 422) == "idempotency_key_reused"


def test_only_a_send_that_names_a_template_reads_one(alice):
    template = created(alice)["template_id"]
    table = f'"{Template._meta.db_table}"'
    for body, reads in [({"body": "x"}, 0), ({"template_id": template}, 1)]:
        accepted(alice, body)  # with which the rows of the key are read
        with CaptureQueriesContext(connection) as captured:
            accepted(alice, body)
        assert len([each for each in captured if table in each["sql"]]) == reads

"""Templates over the API: create, edit, list, delete, and name one in a send."""

import json

import pytest
from auditlog.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from notifications_app import templates
from notifications_app.models import IdempotencyRecord, Notification, Template
from pushsvc.common.ids import uuid7
from tests import openapi
from tests.api.support import accepted, anonymous, code, faults, may_be_null, owner_of
from tests.factories import make_template
from tests.pipeline.support import in_threads

# jsonb would sort the names of `data`.
CONTENT = {
    "title": "Your order",
    "body": "It left our warehouse.",
    "url": "https://shop.example/orders",
    "data": {"order": "4711", "a": "1", "zone": "b"},
    "ttl": 0,
    "urgency": "high",
    "actions": [{"id": "track", "title": "Track it"}],
    "web": {"require_interaction": True, "image": None},
    "android": {"sound": "ding", "title": None},
    "ios": {"badge": 0, "sound": {"name": "ding.wav", "volume": 0.5}},
    "translations": {"pt-BR": {"title": "Seu pedido", "actions": {"track": "Rastrear"}}},
}
GIVEN = {"name": "Order shipped", "content": CONTENT}
LATER = "2031-01-01T00:00:00Z"


def path(owner, *parts):
    return "/".join([f"/channel/{owner.channel.id}/templates", *map(str, parts)])


def created(owner, body=GIVEN, **headers):
    response = owner.call("POST", path(owner), body, **headers)
    assert response.status_code == 201, response.content
    return response.json()


def listed(owner, query=""):
    response = owner.call("GET", path(owner) + query)
    assert response.status_code == 200, response.content
    return response


def names(owner):
    return set(Template.objects.filter(channel=owner.channel).values_list("name", flat=True))


# --- create, read, edit, delete -------------------------------------------------------------------


def test_a_template_reads_back_as_it_was_given(alice):
    template = created(alice)

    row = Template.objects.get()
    assert list(template) == ["template_id", "name", "content", "created_at", "updated_at"]
    assert template["template_id"] == str(row.id)
    # As text, because the order of names counts.
    assert json.dumps(template["content"]) == json.dumps(CONTENT)
    assert template["name"] == "Order shipped"
    assert template["created_at"] == template["updated_at"]
    assert row.channel == alice.channel
    assert alice.call("GET", path(alice, row.id)).json() == template
    assert listed(alice).json() == [template]


def test_an_edit_replaces_name_and_content_and_keeps_the_rest(alice):
    template = created(alice)
    changes = {"name": "Shipped", "content": {"body": "It is on its way."}}

    response = alice.call("PUT", path(alice, template["template_id"]), changes)

    assert response.status_code == 200
    edited = response.json()
    assert edited["updated_at"] > template["updated_at"]
    assert edited == template | changes | {"updated_at": edited["updated_at"]}
    assert alice.call("GET", path(alice, template["template_id"])).json() == edited


def test_a_deleted_template_is_not_found(alice):
    address = path(alice, created(alice)["template_id"])

    response = alice.call("DELETE", address)

    assert (response.status_code, response.content) == (204, b"")
    for method, body in [("GET", None), ("DELETE", None), ("PUT", GIVEN)]:
        assert code(alice.call(method, address, body), 404) == "not_found"


def test_the_list_is_newest_first_in_pages(alice, bob):
    made = [created(alice, GIVEN | {"name": str(number)}) for number in range(5)]
    created(bob)

    assert listed(alice).json() == made[::-1]
    page = listed(alice, "?limit=2&offset=1")
    assert page.json() == [made[3], made[2]]
    assert 'rel="next"' in page.headers["Link"]
    assert 'rel="prev"' in page.headers["Link"]
    assert "Link" not in listed(alice, "?limit=5").headers
    assert faults(alice.call("GET", path(alice) + "?limit=0")) == [("limit", "out_of_range")]


def test_a_name_is_unique_in_its_channel(alice, bob):
    created(alice)
    assert created(bob)["name"] == "Order shipped"
    other = created(alice, GIVEN | {"name": "order shipped"})["template_id"]

    assert code(alice.call("POST", path(alice), GIVEN), 409) == "template_name_taken"
    assert code(alice.call("PUT", path(alice, other), GIVEN), 409) == "template_name_taken"
    assert names(alice) == {"Order shipped", "order shipped"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("content", "required"), ("name", "required")]),
        ({"name": "", "content": {}}, [("name", "blank")]),
        ({"name": " \t", "content": {}}, [("name", "malformed")]),
        ({"name": "x" * 101, "content": {}}, [("name", "too_long")]),
        ({"name": "x", "content": None}, [("content", "null")]),
        ({"name": "x", "content": []}, [("content", "not_an_object")]),
        ({"name": "x", "content": {}, "contents": {}}, [("contents", "unknown_field")]),
        ({"name": "x", "content": {"body": ""}}, [("content.body", "blank")]),
        ({"name": "x", "content": {"title": None}}, [("content.title", "null")]),
        ({"name": "x", "content": {"ios": {"soung": 1}}}, [("content.ios.soung", "unknown_field")]),
        (
            {"name": "x", "content": {"translations": {"de": {"actions": {"buy": "Kaufen"}}}}},
            [("content.translations.de.actions.buy", "unknown_field")],
        ),
        ({"name": "x", "content": {"vars": {"a": "b"}}}, [("content.vars", "not_combinable")]),
        *[
            ({"name": "x", "content": {other: value}}, [(f"content.{other}", "unknown_field")])
            for other, value in {
                "category": "news",
                "scheduled_at": LATER,
                "expires_at": LATER,
                "segment_id": None,
                "external_ids": ["user-42"],
                "target_platforms": ["web"],
                "template_id": None,
                "dry_run": True,
            }.items()
        ],
    ],
)
def test_a_fault_has_its_path_and_nothing_is_stored(alice, body, expected):
    response = alice.call("POST", path(alice), body)
    assert sorted(faults(response)) == expected
    assert response.json()["code"] == "validation_error"
    assert not Template.objects.exists()


def test_a_channel_has_at_most_a_thousand_templates(alice, bob, monkeypatch):
    assert templates.MAX_TEMPLATES == 1_000
    monkeypatch.setattr(templates, "MAX_TEMPLATES", 2)
    first = created(alice, GIVEN | {"name": "1"})
    created(alice, GIVEN | {"name": "2"})

    assert faults(alice.call("POST", path(alice), GIVEN)) == [("name", "too_many")]
    created(bob)
    alice.call("DELETE", path(alice, first["template_id"]))
    created(alice)


def test_only_a_key_with_the_scope_manages_templates(alice, bob):
    template = created(alice)["template_id"]
    sender = owner_of(alice.channel, scopes=["send", "read", "subscribers"])
    calls = [
        ("GET", path(alice), None),
        ("POST", path(alice), GIVEN),
        ("GET", path(alice, template), None),
        ("PUT", path(alice, template), GIVEN),
        ("DELETE", path(alice, template), None),
    ]
    for method, address, body in calls:
        assert code(sender.call(method, address, body), 403) == "missing_scope"
        assert code(bob.call(method, address, body), 404) == "channel_not_found"
        faults(Client().generic(method, address), 401)
    assert names(alice) == {"Order shipped"}
    only_manages = owner_of(alice.channel, scopes=["manage"])
    assert only_manages.call("GET", path(alice)).status_code == 200


def test_another_channels_template_is_answered_like_a_missing_one(alice, bob):
    theirs = created(bob)["template_id"]
    for method, body in [("GET", None), ("PUT", GIVEN), ("DELETE", None)]:
        found = alice.call(method, path(alice, theirs), body)
        missing = alice.call(method, path(alice, uuid7()), body)
        faults(found, 404)
        assert anonymous(found) == anonymous(missing)
    assert names(bob) == {"Order shipped"}


def test_the_audit_log_has_each_version_but_never_data(alice):
    address = path(alice, created(alice)["template_id"])
    edited = CONTENT | {"title": "Shipped", "data": {"order": "4712"}}
    alice.call("PUT", address, {"name": "Order shipped", "content": edited})
    reordered = edited | {"data": {"b": "1", "a": "2"}}
    alice.call("PUT", address, {"name": "Order shipped", "content": reordered})
    alice.call("PUT", address, {"name": "Order shipped", "content": reordered})
    alice.call("DELETE", address)

    create, update, of_data, delete = LogEntry.objects.filter(
        content_type__model="template"
    ).order_by("id")
    shown = {"name": "Order shipped", **CONTENT}
    del shown["data"]
    assert create.changes == {name: [None, value] for name, value in shown.items()}
    assert update.changes == {"title": ["Your order", "Shipped"]}
    assert update.additional_data["note"] == "Also changed: data."
    assert (of_data.changes, of_data.additional_data["note"]) == ({}, "Also changed: data.")
    assert delete.changes["title"] == ["Shipped", None]
    assert "471" not in json.dumps([each.changes for each in (create, update, of_data, delete)])


# --- repeated and simultaneous requests ----------------------------------------------------------


def test_a_repeated_request_gets_the_first_answer(alice):
    once = {"Idempotency-Key": "a"}
    first = created(alice, **once)

    assert created(alice, **once) == first
    alice.call("DELETE", path(alice, first["template_id"]))
    assert created(alice, **once) == first
    assert not Template.objects.exists()
    other = alice.call("POST", path(alice), GIVEN | {"name": "x"}, **once)
    assert code(other, 422) == "idempotency_key_reused"


def test_what_a_key_was_answered_for_a_send_answers_no_template(alice):
    once = {"Idempotency-Key": "a"}
    template = created(alice)["template_id"]
    accepted(alice, {"template_id": template}, **once)

    refused = alice.call("POST", path(alice), {"template_id": template}, **once)

    assert ("template_id", "unknown_field") in faults(refused)


@pytest.mark.django_db(transaction=True)
def test_of_two_simultaneous_templates_with_one_name_one_is_made(alice):
    for number in range(3):
        body = GIVEN | {"name": str(number)}
        owners = [owner_of(alice.channel) for _ in range(2)]

        statuses = in_threads(
            *(
                lambda owner=owner, body=body: owner.call("POST", path(owner), body).status_code
                for owner in owners
            )
        )

        assert sorted(statuses) == [201, 409]
    assert names(alice) == {"0", "1", "2"}


@pytest.mark.django_db(transaction=True)
def test_of_two_simultaneous_templates_the_last_place_is_given_once(alice, monkeypatch):
    monkeypatch.setattr(templates, "MAX_TEMPLATES", 1)
    owners = [owner_of(alice.channel) for _ in range(2)]

    statuses = in_threads(
        *(
            lambda owner=owner, name=name: (
                owner.call("POST", path(owner), GIVEN | {"name": name}).status_code
            )
            for owner, name in zip(owners, "ab", strict=True)
        )
    )

    assert sorted(statuses) == [201, 400]
    assert Template.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_send_beside_the_deletion_is_accepted_whole_or_refused(alice):
    for number in range(5):
        template = created(alice, GIVEN | {"name": str(number)})["template_id"]
        body = {"template_id": template, "scheduled_at": LATER}
        sender, deleter = (owner_of(alice.channel) for _ in range(2))

        sent, deleted = in_threads(
            lambda sender=sender, body=body: sender.send(body),
            lambda deleter=deleter, template=template: (
                deleter.call("DELETE", path(alice, template)).status_code
            ),
        )

        assert deleted == 204
        if sent.status_code == 202:
            found = Notification.objects.get(id=sent.json()["notification_id"])
            assert (found.title, found.extras["ios"]) == (CONTENT["title"], CONTENT["ios"])
        else:
            assert faults(sent) == [("template_id", "template_not_found")]


# --- sending --------------------------------------------------------------------------------------


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
    without = {"icon": "", "image": "", "topic": "", "vars": {}}
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
}
FULL = CONTENT | {
    "icon": "https://shop.example/icon.png",
    "image": "https://shop.example/image.png",
    "topic": "orders",
    "translations": {"pt-BR": {"title": "Seu pedido"}},
    "personalize": True,
    "vars": {"sale": "20 %"},
}


@pytest.mark.parametrize("name", NOTHING)
def test_null_takes_a_field_of_the_template_away_and_leaves_the_others(alice, name):
    template = str(make_template(alice.channel, content=FULL).id)
    _, whole = content_of(alice, accepted(alice, {"template_id": template}))
    assert all(whole[each] == FULL[each] for each in NOTHING)

    _, content = content_of(alice, accepted(alice, {"template_id": template, name: None}))

    assert content == whole | {name: NOTHING[name]}


@pytest.mark.parametrize("name", ["body", "ttl", "urgency", "personalize", "on_missing"])
def test_what_every_send_has_cannot_be_taken_away(alice, name):
    template = str(make_template(alice.channel, content=FULL).id)
    assert faults(alice.send({"template_id": template, name: None})) == [(name, "null")]


@pytest.mark.parametrize("template_id", [{}, {"template_id": None}])
def test_without_a_template_null_is_refused(alice, template_id):
    for name in NOTHING:
        assert faults(alice.send({"body": "x", name: None} | template_id)) == [(name, "null")]


def test_the_api_s_document_says_what_null_takes_away():
    schemas = openapi.document()["components"]["schemas"]
    fields = schemas["SendInput"]["properties"]
    shown = {name for name in fields if may_be_null(fields[name], schemas)}
    assert shown == {*NOTHING, "segment_id", "rule", "template_id"} | {
        "external_ids",
        "subscription_ids",
        "targets",
    }


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
        assert faults(answer) == [("template_id", "template_not_found")]
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
    assert faults(alice.send(body)) == expected


def test_no_template_is_the_same_as_none_given(alice):
    assert accepted(alice, {"body": "x", "template_id": None}).template_id is None


def test_a_template_without_a_body_leaves_it_to_the_send(alice):
    template = make_template(alice.channel, content={"title": "Sale"}).id
    assert faults(alice.send({"template_id": str(template)})) == [("body", "required")]
    sent = accepted(alice, {"template_id": str(template), "body": "20 % off"})
    assert (sent.title, sent.body) == ("Sale", "20 % off")


def test_what_the_send_and_the_template_say_together_is_judged(alice):
    template = created(alice)["template_id"]
    other = [{"id": "buy", "title": "Buy"}]
    assert faults(alice.send({"template_id": template, "actions": other})) == [
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
        assert faults(refused) == [("target_platforms", "payload_too_large")]


def test_an_edit_names_no_template(alice):
    template = created(alice)["template_id"]
    sent = accepted(alice, {"template_id": template, "scheduled_at": LATER})

    address = f"/notification/{sent.id}"
    refused = alice.call("PATCH", address, {"template_id": template})
    assert faults(refused) == [("template_id", "unknown_field")]
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

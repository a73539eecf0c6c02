"""Templates over the API: content, repeated requests, and limits."""

import json

import pytest
from auditlog.models import LogEntry

from notifications_app.models import Notification, Template
from notifications_app.sends import templates
from tests.api.support import accepted, code, errors, owner_of
from tests.api.templates import CONTENT, GIVEN, LATER, created, path
from tests.pipeline.support import in_threads


def names(owner):
    return set(Template.objects.filter(channel=owner.channel).values_list("name", flat=True))


def test_data_keep_the_order_of_their_names(alice):
    address = path(alice, created(alice)["template_id"])
    assert list(alice.call("GET", address).json()["content"]["data"]) == list(CONTENT["data"])


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
        (
            {"name": "x", "content": {"ios": {"sound": {"name": None}}}},
            [("content.ios.sound.name", "null")],
        ),
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
def test_an_error_has_its_path_and_nothing_is_stored(alice, body, expected):
    response = alice.call("POST", path(alice), body)
    assert sorted(errors(response)) == expected
    assert response.json()["code"] == "validation_error"
    assert not Template.objects.exists()


def test_a_channel_has_at_most_a_thousand_templates(alice, bob, monkeypatch):
    assert templates.MAX_TEMPLATES == 1_000
    monkeypatch.setattr(templates, "MAX_TEMPLATES", 2)
    first = created(alice, GIVEN | {"name": "1"})
    created(alice, GIVEN | {"name": "2"})

    assert errors(alice.call("POST", path(alice), GIVEN)) == [("name", "too_many")]
    created(bob)
    alice.call("DELETE", path(alice, first["template_id"]))
    created(alice)


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

    assert ("template_id", "unknown_field") in errors(refused)


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
            assert errors(sent) == [("template_id", "template_not_found")]

"""Automations over the API: their triggers, their sends and their limits."""

import pytest
from auditlog.models import LogEntry
from django.db.models.functions import Now

from notifications_app.models import Automation, AutomationDay
from notifications_app.sends import automations
from pushsvc.common.ids import uuid7
from tests.api.support import NOWHERE, code, errors
from tests.api.templates import created as template_created
from tests.factories import add_subscriptions, make_segment
from tests.segments import attribute

SEND = {"title": "Welcome", "body": "Begin here.", "data": {"z": "1", "a": "2"}}
GIVEN = {
    "name": "Welcome",
    "trigger": {"event": "subscriptions.created"},
    "delay_minutes": 10,
    "notification": SEND,
}


def path(owner, *parts):
    return "/".join([f"/channel/{owner.channel.id}/automations", *map(str, parts)])


def created(owner, body=GIVEN, **headers):
    response = owner.call("POST", path(owner), body, **headers)
    assert response.status_code == 201, response.content
    return response.json()


def sending(**changes):
    return GIVEN | {"notification": SEND | changes}


def following(event, **about):
    return GIVEN | {"trigger": {"event": event, **about}}


def test_an_automation_reads_back_as_it_was_created(alice):
    made = created(alice)

    assert list(made) == [
        *("automation_id", "name", "enabled", "trigger", "delay_minutes", "recipient"),
        *("notification", "once_per_days", "waiting", "disabled_code"),
        *("created_at", "updated_at"),
    ]
    assert made["notification"] == SEND | {"target_platforms": ["web"]}
    assert list(made["notification"]["data"]) == ["z", "a"]
    assert made["trigger"] == GIVEN["trigger"]
    assert (made["enabled"], made["recipient"], made["once_per_days"]) == (True, "device", None)
    add_subscriptions(alice.channel, 3)
    address = path(alice, made["automation_id"])
    assert alice.call("GET", address).json() == made | {"waiting": 3}
    assert alice.call("GET", path(alice)).json() == [made | {"waiting": 3}]
    assert alice.call("GET", f"{address}/days").json() == []


def test_an_edit_replaces_everything_and_a_deletion_ends_it(alice):
    made = created(alice)
    address = path(alice, made["automation_id"])
    changes = {
        "name": "Cart",
        "enabled": False,
        "trigger": {"event": "subscriptions.tagged", "tag": "cart"},
        "delay_minutes": 43_200,
        "recipient": "person",
        "notification": {"body": "Bread", "target_platforms": ["all"]},
        "once_per_days": 365,
    }

    changed = alice.call("PUT", address, changes).json()

    assert changed == made | changes | {"updated_at": changed["updated_at"]}
    assert code(alice.call("PUT", address, {"name": "x"}), 400) == "validation_error"
    assert alice.call("DELETE", address).status_code == 204
    assert code(alice.call("DELETE", address), 404) == "not_found"
    assert code(alice.call("PUT", address, changes), 404) == "not_found"
    assert code(alice.call("GET", f"{address}/days"), 404) == "not_found"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {},
            [
                *[(name, "required") for name in ("name", "trigger", "delay_minutes")],
                ("notification", "required"),
            ],
        ),
        (GIVEN | {"name": " "}, [("name", "malformed")]),
        (GIVEN | {"delay_minutes": -1}, [("delay_minutes", "out_of_range")]),
        (GIVEN | {"delay_minutes": 43_201}, [("delay_minutes", "out_of_range")]),
        (GIVEN | {"once_per_days": 0}, [("once_per_days", "out_of_range")]),
        (GIVEN | {"recipient": "all"}, [("recipient", "not_a_choice")]),
        (GIVEN | {"trigger": {}}, [("trigger.event", "required")]),
        (following("x"), [("trigger.event", "not_a_choice")]),
        (following("subscriptions.created", tag="cart"), [("trigger.tag", "not_combinable")]),
        (following("subscriptions.tagged"), [("trigger.tag", "required")]),
        (following("subscriptions.tagged", tag="a b"), [("trigger.tag", "not_a_tag")]),
        (
            following("subscriptions.tagged", tag="cart", label="x"),
            [("trigger.label", "not_combinable")],
        ),
        (following("notifications.clicked", label=""), [("trigger.label", "blank")]),
        (following("notifications.clicked", hours=1), [("trigger.hours", "not_combinable")]),
        (following("notifications.unclicked"), [("trigger.hours", "required")]),
        (following("notifications.unclicked", hours=169), [("trigger.hours", "out_of_range")]),
        (sending(body=""), [("notification.body", "blank")]),
        (sending(segment_id=NOWHERE), [("notification.segment_id", "segment_not_found")]),
        (sending(template_id=NOWHERE), [("notification.template_id", "template_not_found")]),
        (sending(category="none"), [("notification.category", "category_unknown")]),
        (sending(external_ids=["user-42"]), [("notification.external_ids", "unknown_field")]),
        (sending(local_at="09:00"), [("notification.local_at", "unknown_field")]),
    ],
)
def test_what_cannot_be_followed_or_sent_is_refused(alice, body, expected):
    response = alice.call("POST", path(alice), body)
    assert response.status_code == 400
    assert errors(response) == expected
    assert not Automation.objects.exists()


def test_the_content_of_a_template_is_copied(alice):
    template = template_created(alice)["template_id"]
    made = created(alice, GIVEN | {"notification": {"template_id": template}})
    assert alice.call("DELETE", f"/channel/{alice.channel.id}/templates/{template}").status_code
    assert alice.call("GET", path(alice, made["automation_id"])).json() == made
    assert made["notification"]["body"]


def test_a_channel_has_a_limited_number_of_automations(alice, monkeypatch):
    monkeypatch.setattr(automations, "MAX_AUTOMATIONS", 2)
    created(alice)
    created(alice)
    assert code(alice.call("POST", path(alice), GIVEN), 409) == "too_many_automations"


def test_a_repeated_request_with_a_key_makes_one_automation(alice):
    key = {"Idempotency-Key": "welcome-1"}
    assert created(alice, **key) == created(alice, **key)
    assert Automation.objects.count() == 1


def test_a_segment_that_an_enabled_automation_names_cannot_be_deleted(alice):
    segment = make_segment(alice.channel, attribute("plan", "eq", "pro"))
    made = created(alice, sending(segment_id=str(segment.pk)))
    address = f"/channel/{alice.channel.id}/segments/{segment.pk}"
    assert code(alice.call("DELETE", address), 409) == "segment_in_use"
    off = sending(segment_id=str(segment.pk)) | {"enabled": False}
    alice.call("PUT", path(alice, made["automation_id"]), off)
    assert alice.call("DELETE", address).status_code == 204


def test_days_are_listed_with_the_latest_first(alice):
    made = created(alice)
    own = {"automation_id": made["automation_id"], "ends_at": Now()}
    sent = uuid7()
    AutomationDay.objects.create(**own, begins_at="2026-01-01T00:00Z", gone=2, condition=1)
    AutomationDay.objects.create(
        **own, begins_at="2026-01-02T00:00Z", fired=3, notification_id=sent
    )
    second, first = alice.call("GET", path(alice, made["automation_id"], "days")).json()
    assert (second["fired"], second["notification_id"]) == (3, str(sent))
    assert first["skipped"] == {
        **dict.fromkeys(("repeated", "platform", "stopped", "late"), 0),
        "condition": 1,
        "gone": 2,
    }


def test_changes_are_in_the_audit_log_without_data(alice):
    made = created(alice)
    changed = sending(data={"code": "secret"}) | {"delay_minutes": 20}
    alice.call("PUT", path(alice, made["automation_id"]), changed)
    alice.call("DELETE", path(alice, made["automation_id"]))
    own = LogEntry.objects.filter(object_pk=made["automation_id"]).order_by("id")
    create, update, delete = own
    assert update.changes["delay_minutes"] == [10, 20]
    assert "data" in update.additional_data["note"]
    assert "secret" not in str([each.changes for each in own])
    assert [each.action for each in (create, update, delete)] == [0, 1, 2]

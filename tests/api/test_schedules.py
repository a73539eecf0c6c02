"""Schedules over the API: their rules, their sends, their limits, and who may change them."""

import json
from dataclasses import fields
from datetime import date, timedelta
from uuid import UUID

import pytest
from auditlog.models import LogEntry
from django.utils import timezone

from notifications_app.content.values import Content, SendRequest
from notifications_app.models import Notification, Occurrence, Schedule, Template
from notifications_app.sends import schedules
from notifications_app.sends.firing import fire_next
from notifications_app.sends.schema import ScheduledSend, read_scheduled
from notifications_app.sends.stored_sends import body_of, loaded
from pushsvc.common.platforms import Platform
from tests.api.schedules import GIVEN, SEND, WEEKLY, created, due, path, recurring, sending
from tests.api.support import NOWHERE, code, errors, owner_of
from tests.api.templates import CONTENT
from tests.api.templates import created as template_created
from tests.factories import make_category, make_segment
from tests.segments import attribute

NEVER = "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"
SEGMENT = attribute("plan", "eq", "pro")


def test_a_schedule_reads_back_as_it_was_created(alice):
    made = created(alice)

    row = Schedule.objects.get()
    assert list(made) == [
        *("schedule_id", "name", "enabled", "notification", "recurrence", "once_per_days"),
        *("next_at", "last_notification_id", "disabled_code", "created_at", "updated_at"),
    ]
    assert made["notification"] == SEND | {"target_platforms": ["web"]}
    assert list(made["notification"]["data"]) == ["z", "a"]
    assert made["recurrence"] == WEEKLY | {
        "starts_on": made["recurrence"]["starts_on"],
        "ends_on": None,
        "count": None,
    }
    assert made["next_at"].endswith(":00:00.000Z")
    assert row.next_at > timezone.now()
    assert row.next_at.weekday() in {0, 3}
    assert (made["enabled"], made["disabled_code"], made["last_notification_id"]) == (
        True,
        None,
        None,
    )
    assert alice.call("GET", path(alice, made["schedule_id"])).json() == made
    assert alice.call("GET", path(alice)).json() == [made]
    assert alice.call("GET", path(alice, made["schedule_id"], "occurrences")).json() == []


def test_an_edit_replaces_everything_and_a_deletion_ends_it(alice):
    made = created(alice)
    address = path(alice, made["schedule_id"])
    changes = {
        "name": "Monthly",
        "enabled": False,
        "notification": {"body": "Bread", "target_platforms": ["all"]},
        "recurrence": {
            **WEEKLY,
            "rule": "FREQ=MONTHLY;BYDAY=-1FR",
            "at": ["18:30", "07:00"],
            "timezone": "america/new_york",
            "starts_on": "2026-01-01",
            "ends_on": "2031-01-01",
            "count": 100,
        },
    }

    changed = alice.call("PUT", address, changes).json()

    canonical = changes["recurrence"] | {"timezone": "America/New_York"}
    assert changed == made | changes | {
        "recurrence": canonical,
        "next_at": None,
        "updated_at": changed["updated_at"],
    }
    assert alice.call("PUT", address, changes | {"enabled": True}).json()["next_at"]
    assert code(alice.call("PUT", address, {"name": "x"}), 400) == "validation_error"
    assert alice.call("DELETE", address).status_code == 204
    assert code(alice.call("DELETE", address), 404) == "not_found"
    assert code(alice.call("PUT", address, changes), 404) == "not_found"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("name", "required"), ("notification", "required"), ("recurrence", "required")]),
        (GIVEN | {"name": " "}, [("name", "malformed")]),
        (GIVEN | {"once_per_day": 1}, [("once_per_day", "unknown_field")]),
        (sending(body=""), [("notification.body", "blank")]),
        (GIVEN | {"notification": []}, [("notification", "not_an_object")]),
        (GIVEN | {"notification": None}, [("notification", "null")]),
        (sending(body="{{ a", personalize=True), [("notification.body", "not_a_template")]),
        (sending(segment_id=NOWHERE), [("notification.segment_id", "segment_not_found")]),
        (sending(template_id=NOWHERE), [("notification.template_id", "template_not_found")]),
        (sending(category="none"), [("notification.category", "category_unknown")]),
        (
            sending(target_platforms=["ios"]),
            [("notification.target_platforms", "platform_not_enabled")],
        ),
        (
            sending(segment_id=NOWHERE, rule=SEGMENT),
            [("notification.rule", "not_combinable")],
        ),
        *[
            (sending(**{name: value}), [(f"notification.{name}", "unknown_field")])
            for name, value in {
                "scheduled_at": "2031-01-01T00:00:00Z",
                "expires_at": "2031-01-01T00:00:00Z",
                "external_ids": ["user-42"],
                "subscription_ids": [NOWHERE],
                "targets": [],
                "dry_run": True,
            }.items()
        ],
        (recurring(rule="FREQ=HOURLY"), [("recurrence.rule", "malformed")]),
        (recurring(rule=NEVER), [("recurrence.rule", "never_happens")]),
        (recurring(starts_on="2020-01-01", count=3), [("recurrence.rule", "never_happens")]),
        (recurring(ends_on="2020-01-01"), [("recurrence.ends_on", "out_of_range")]),
        (recurring(at=[]), [("recurrence.at", "empty")]),
        (recurring(at=["9:00"]), [("recurrence.at.0", "not_a_local_time")]),
        (recurring(at=["24:00"]), [("recurrence.at.0", "not_a_local_time")]),
        (recurring(at=["09:00", "09:10"]), [("recurrence.at", "out_of_range")]),
        (recurring(at=["09:00"] * 25), [("recurrence.at", "too_many")]),
        (recurring(timezone="Mars/Base"), [("recurrence.timezone", "not_a_timezone")]),
        (recurring(timezone=""), [("recurrence.timezone", "blank")]),
        (recurring(timezone="Recipient"), [("recurrence.timezone", "not_a_timezone")]),
        (recurring(starts_on="2026-02-30"), [("recurrence.starts_on", "not_a_date")]),
        (recurring(starts_on="20260201"), [("recurrence.starts_on", "not_a_date")]),
        (recurring(starts_on="1999-12-31"), [("recurrence.starts_on", "out_of_range")]),
        (recurring(starts_on="2150-01-01"), [("recurrence.starts_on", "out_of_range")]),
        (recurring(count=0), [("recurrence.count", "out_of_range")]),
        (recurring(count=10_001), [("recurrence.count", "out_of_range")]),
    ],
)
def test_an_error_has_its_path_and_nothing_is_stored(alice, body, expected):
    response = alice.call("POST", path(alice), body)
    assert sorted(errors(response)) == expected
    assert not Schedule.objects.exists()


def test_a_malformed_rule_is_refused_with_the_name_of_its_part(alice):
    response = alice.call("POST", path(alice), recurring(rule="FREQ=DAILY;BYDAY=1MO"))
    assert response.json()["errors"][0]["detail"].startswith("BYDAY: ")


def test_the_content_of_a_template_is_copied_when_the_schedule_is_stored(alice):
    template = template_created(alice)["template_id"]
    given = GIVEN | {"notification": {"template_id": template, "title": "Weekly"}}
    made = created(alice, given)
    Template.objects.update(content_json=json.dumps({"body": "Changed."}))

    sent = made["notification"]
    assert (sent["title"], sent["body"]) == ("Weekly", CONTENT["body"])
    assert sent["template_id"] == template
    address = path(alice, made["schedule_id"])
    assert alice.call("GET", address).json()["notification"] == sent
    again = alice.call("PUT", address, given).json()["notification"]
    assert (again["title"], again["body"]) == ("Weekly", "Changed.")


def test_what_is_stored_is_the_send_that_was_given(alice):
    """With everything that a send can have."""
    category = make_category(alice.channel)
    send = CONTENT | {
        "target_platforms": ["web"],
        "category": category.key,
        "rule": SEGMENT,
        "personalize": True,
        "vars": {"city": "Lisbon"},
        "on_missing": "bounce",
        "variants": [{"name": "a", "weight": 1, "title": "A"}, {"name": "b", "weight": 9}],
        "test": {"share": 20, "minutes": 60, "metric": "received", "inconclusive": "b"},
        "topic": "news",
        "rate_per_minute": 0,
    }
    made = created(alice, GIVEN | {"notification": send})
    assert made["notification"]["rule"] == SEGMENT
    Schedule.objects.update(next_at=timezone.now())

    assert fire_next()

    sent = Notification.objects.get(pk=Schedule.objects.get().last_notification_id)
    meant = read_scheduled(send)
    assert sent.content == meant.content
    assert list(sent.content.data) == list(CONTENT["data"])
    assert (sent.category, sent.rule, sent.rate_per_minute) == (category.key, SEGMENT, 0)
    assert sent.test == send["test"]
    assert loaded(Schedule.objects.get().send) == meant


# What a schedule itself says, or may not say.
OF_NO_SCHEDULE = {
    "targets",
    "scheduled_at",
    "local_at",
    "expires_at",
    "only_subscription_id",
    "replaces",
    "root_id",
}


def test_every_field_of_a_send_is_stored():
    """A new field must be stored, or refused by ScheduledSend and named in OF_NO_SCHEDULE."""
    send = SendRequest(
        content=Content(body="Hello"),
        target_platforms=(Platform.IOS, Platform.WEB),
        segment_id=UUID(NOWHERE),
        category="news",
        rule=SEGMENT,
        rate_per_minute=0,
        quiet_hours={"from": "22:00", "to": "08:00"},
        cap="ignore",
        test={"share": 20, "minutes": 60, "metric": "clicked", "inconclusive": "hold"},
        name="Monthly digest",
        labels=("digest", "news"),
        template_id=UUID(NOWHERE),
    )
    usual = SendRequest(content=Content(body=""), target_platforms=())
    names = {each.name for each in fields(SendRequest)} - OF_NO_SCHEDULE
    assert [name for name in names if getattr(send, name) == getattr(usual, name)] == []
    assert loaded(body_of(send)) == send
    assert loaded(body_of(usual)) == usual
    assert OF_NO_SCHEDULE & set(ScheduledSend().fields) == set()


def test_once_per_days_is_stored_and_replaced(alice):
    made = created(alice, GIVEN | {"once_per_days": 7})
    address = path(alice, made["schedule_id"])
    assert made["once_per_days"] == alice.call("GET", address).json()["once_per_days"] == 7
    assert alice.call("PUT", address, GIVEN).json()["once_per_days"] is None
    for given in (0, 366):
        response = alice.call("PUT", address, GIVEN | {"once_per_days": given})
        assert errors(response) == [("once_per_days", "out_of_range")]


def test_a_channel_has_at_most_two_hundred_schedules(alice, bob, monkeypatch):
    assert schedules.MAX_SCHEDULES == 200
    monkeypatch.setattr(schedules, "MAX_SCHEDULES", 1)
    first = created(alice)
    assert code(alice.call("POST", path(alice), GIVEN), 409) == "too_many_schedules"
    created(bob)
    alice.call("DELETE", path(alice, first["schedule_id"]))
    created(alice)


def test_a_repeated_request_gets_the_first_answer(alice):
    once = {"Idempotency-Key": "a"}
    assert created(alice, **once) == created(alice, **once)
    assert Schedule.objects.count() == 1


def test_a_segment_of_an_enabled_schedule_cannot_be_deleted(alice):
    segment = make_segment(alice.channel, SEGMENT)
    address = f"/channel/{alice.channel.id}/segments/{segment.id}"
    given = sending(segment_id=str(segment.id))
    made = created(alice, given)

    refused = alice.call("DELETE", address)
    assert code(refused, 409) == "segment_in_use"
    assert made["schedule_id"] in refused.json()["detail"]
    schedule = path(alice, made["schedule_id"])
    assert alice.call("PUT", schedule, given | {"enabled": False}).status_code == 200
    assert alice.call("DELETE", address).status_code == 204
    assert errors(alice.call("PUT", schedule, given)) == [
        ("notification.segment_id", "segment_not_found")
    ]


def test_the_audit_log_has_each_change_but_neither_data_nor_values(alice):
    made = created(alice, sending(vars={"order": "4711"}, personalize=True, body="{{ order }}"))
    address = path(alice, made["schedule_id"])
    alice.call("PUT", address, GIVEN | {"enabled": False})
    alice.call("PUT", address, sending(data={"order": "4712"}) | {"enabled": False})
    alice.call("DELETE", address)

    entries = LogEntry.objects.filter(content_type__model="schedule").order_by("id")
    create, update, of_data, delete = entries
    assert create.changes["recurrence"][1] == made["recurrence"]
    assert update.changes["is_enabled"] == [True, False]
    assert (of_data.changes, of_data.additional_data["note"]) == ({}, "Also changed: data.")
    assert delete.changes["title"] == [SEND["title"], None]
    assert "471" not in json.dumps(
        [(each.changes, each.object_repr, each.additional_data) for each in entries]
    )


def test_a_key_without_the_scope_reads_and_changes_nothing(alice):
    made = created(alice)
    address = path(alice, made["schedule_id"])
    reader = owner_of(alice.channel, scopes=("read", "manage", "subscribers"))
    for method, where in [
        ("GET", path(alice)),
        ("POST", path(alice)),
        ("GET", address),
        ("PUT", address),
        ("DELETE", address),
        ("GET", f"{address}/occurrences"),
    ]:
        body = GIVEN if method in {"POST", "PUT"} else None
        assert code(reader.call(method, where, body), 403) == "missing_scope"


def test_another_channels_schedule_is_not_found(alice, bob):
    made = created(alice)["schedule_id"]
    for method, parts in [("GET", ()), ("PUT", ()), ("DELETE", ()), ("GET", ("occurrences",))]:
        body = GIVEN if method == "PUT" else None
        assert code(bob.call(method, path(bob, made, *parts), body), 404) == "not_found"
    assert Schedule.objects.count() == 1


def test_occurrences_are_listed_page_by_page_with_what_became_of_them(alice):
    schedule = due(alice)
    fire_next()
    for day in range(1, 4):
        Occurrence.objects.create(
            schedule=schedule,
            occurs_at=schedule.next_at - timedelta(days=day),
            code="skipped_late",
        )

    address = path(alice, schedule.pk, "occurrences")
    first = alice.call("GET", f"{address}?limit=2")
    rest = alice.call("GET", f"{address}?limit=2&offset=2").json()

    sent, late = first.json()
    assert sent["code"] == "sent"
    assert alice.call("GET", f"/notification/{sent['notification_id']}").status_code == 200
    assert late == {
        "occurs_at": late["occurs_at"],
        "notification_id": None,
        "code": "skipped_late",
    }
    assert sent["occurs_at"] > late["occurs_at"] > rest[0]["occurs_at"] > rest[1]["occurs_at"]
    assert 'rel="next"' in first.headers["Link"]


def test_a_schedule_begins_today_in_its_own_zone(alice):
    for zone, hours in [("Pacific/Kiritimati", 14), ("Pacific/Pago_Pago", -11)]:
        made = created(alice, recurring(timezone=zone))
        today = (timezone.now() + timedelta(hours=hours)).date()
        assert abs(date.fromisoformat(made["recurrence"]["starts_on"]) - today) <= timedelta(days=1)

"""Segments over the API: rules, sizes, sends that name one, and limits."""

import pytest
from auditlog.models import LogEntry

from notifications_app.models import Notification
from pushsvc.common.ids import uuid7
from subscriptions_app.models import Segment
from subscriptions_app.segments import services
from tests import factories, segments
from tests.api.support import code, errors, owner_of
from tests.factories import make_channel
from tests.pipeline.support import in_threads
from tests.segments import attribute, field

PRO = attribute("plan", "eq", "pro")
RULE = {"all": [PRO, {"not": field("platform", "in", ["ios"])}]}
GIVEN = {"name": "Pro, not on iOS", "rule": RULE}


def path(owner, *parts):
    return "/".join([f"/channel/{owner.channel.id}/segments", *map(str, parts)])


def created(owner, body=GIVEN):
    response = owner.call("POST", path(owner), body)
    assert response.status_code == 201, response.content
    return response.json()


# --- changes --------------------------------------------------------------------------------------


def test_the_audit_log_has_each_change_of_a_segment_with_the_values_before_and_after(alice):
    address = path(alice, created(alice)["segment_id"])
    alice.call("PUT", address, {"name": "All pros", "rule": RULE})
    alice.call("DELETE", address)

    entries = LogEntry.objects.filter(content_type__model="segment").order_by("id")
    assert [(entry.get_action_display(), entry.changes["name"]) for entry in entries] == [
        ("create", [None, "Pro, not on iOS"]),
        ("update", ["Pro, not on iOS", "All pros"]),
        ("delete", ["All pros", None]),
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("name", "required"), ("rule", "required")]),
        ({"name": "", "rule": PRO}, [("name", "blank")]),
        ({"name": " \t", "rule": PRO}, [("name", "malformed")]),
        ({"name": 5, "rule": PRO}, [("name", "not_a_string")]),
        ({"name": "x" * 101, "rule": PRO}, [("name", "too_long")]),
        ({"name": "x", "rule": None}, [("rule", "null")]),
        ({"name": "x", "rule": []}, [("rule", "not_an_object")]),
        ({"name": "x", "rule": {"all": [PRO] * 51}}, [("rule", "too_many")]),
        ({"name": "x", "rule": PRO, "rules": PRO}, [("rules", "unknown_field")]),
        (
            {"rule": {"all": [PRO, {"not": field("platform", "gt", "tv")}], "x": 1}},
            [
                ("name", "required"),
                ("rule.all.1.not.operator", "not_a_choice"),
                ("rule.x", "unknown_field"),
            ],
        ),
    ],
)
def test_an_error_has_its_path_and_nothing_is_stored(alice, body, expected):
    response = alice.call("POST", path(alice), body)
    assert sorted(errors(response)) == sorted(expected)
    assert response.json()["code"] == "validation_error"
    assert not Segment.objects.exists()


def test_a_rule_of_the_greatest_depth_fits_into_a_body(alice):
    rule = attribute("plan", "in", ["pro", 5])
    for _ in range(7):
        rule = {"all": [rule]}
    assert created(alice, {"name": "Deep", "rule": rule})["rule"] == rule
    response = alice.call("POST", path(alice), {"name": "Deeper", "rule": {"any": [rule]}})
    assert errors(response) == [("rule" + ".any.0" + ".all.0" * 7, "too_deep")]


# --- sizes ----------------------------------------------------------------------------------------


def test_the_size_counts_active_members_on_all_platforms(alice, bob):
    for platform in segments.PLATFORMS:
        factories.add_subscription(alice.channel, {"plan": "pro"}, platform=platform)
        factories.add_subscription(alice.channel, {"plan": "free"}, platform=platform)
    factories.add_subscription(bob.channel, {"plan": "pro"})
    segment = created(alice, {"name": "Pros", "rule": PRO})["segment_id"]

    response = alice.call("GET", path(alice, segment, "size"))

    assert response.status_code == 200
    assert response.json() == {"size": 3, "estimated": False}


@pytest.mark.django_db
def test_a_dry_run_counts_the_audience_of_a_segment_by_platform():
    owner = owner_of(make_channel(android_enabled=True, ios_enabled=True))
    for platform, count in [("web", 3), ("android", 2), ("ios", 1)]:
        for number in range(count):
            factories.add_subscription(owner.channel, {"number": number}, platform=platform)
    segment = created(owner, {"name": "Later", "rule": attribute("number", "gte", 1)})

    body = {"body": "x", "target_platforms": ["web", "android", "ios"], "dry_run": True}
    response = owner.send(body | {"segment_id": segment["segment_id"]})

    assert response.status_code == 200
    audience = {
        platform: (trial["audience"], trial["estimated"])
        for platform, trial in response.json()["platforms"].items()
    }
    assert audience == {"web": (2, False), "android": (1, False), "ios": (0, False)}
    assert not Notification.objects.exists()


# --- sending --------------------------------------------------------------------------------------


def test_a_send_may_name_a_segment_of_the_channel(alice):
    segment = created(alice)["segment_id"]

    response = alice.send({"body": "x", "segment_id": segment})

    assert response.status_code == 202
    assert str(Notification.objects.get().segment_id) == segment
    read = alice.call("GET", f"/notification/{response.json()['notification_id']}").json()
    assert read["segment_id"] == segment


@pytest.mark.parametrize("extra", [{}, {"dry_run": True}])
def test_a_send_to_another_channels_or_a_deleted_segment_is_refused(alice, bob, extra):
    theirs = created(bob)["segment_id"]
    gone = created(alice)["segment_id"]
    alice.call("DELETE", path(alice, gone))
    for segment in (theirs, gone, str(uuid7())):
        response = alice.send({"body": "x", "segment_id": segment} | extra)
        assert errors(response) == [("segment_id", "segment_not_found")]
    assert not Notification.objects.exists()


def test_a_segment_is_not_deleted_while_a_pending_notification_names_it(alice):
    segment = created(alice)["segment_id"]
    sent = alice.send(
        {"body": "x", "segment_id": segment, "scheduled_at": "2031-01-01T00:00:00Z"}
    ).json()

    refused = alice.call("DELETE", path(alice, segment))
    assert code(refused, 409) == "segment_in_use"
    assert sent["notification_id"] in refused.json()["detail"]

    alice.call("DELETE", f"/cancel-notification/{sent['notification_id']}")
    assert alice.call("DELETE", path(alice, segment)).status_code == 204
    read = alice.call("GET", f"/notification/{sent['notification_id']}").json()
    assert read["segment_id"] == segment


@pytest.mark.django_db(transaction=True)
def test_a_simultaneous_send_and_deletion_never_both_succeed(alice):
    for number in range(5):
        segment = created(alice, {"name": str(number), "rule": PRO})["segment_id"]
        body = {"body": "x", "segment_id": segment, "scheduled_at": "2031-01-01T00:00:00Z"}
        sender, deleter = (owner_of(alice.channel) for _ in range(2))

        sent, deleted = in_threads(
            lambda sender=sender, body=body: sender.send(body).status_code,
            lambda deleter=deleter, segment=segment: (
                deleter.call("DELETE", path(alice, segment)).status_code
            ),
        )

        assert (sent, deleted) in {(202, 409), (400, 204)}


def test_a_repeated_send_gets_its_first_answer_after_the_segment_was_deleted(alice):
    segment = created(alice)["segment_id"]
    body = {"body": "x", "segment_id": segment}
    once = {"Idempotency-Key": "a"}
    first = alice.send(body, **once)
    Notification.objects.update(status="sent")
    alice.call("DELETE", path(alice, segment))

    assert alice.send(body, **once).content == first.content


# --- bounds ---------------------------------------------------------------------------------------


def test_a_channel_has_at_most_a_thousand_segments(alice, bob, monkeypatch):
    assert services.MAX_SEGMENTS == 1_000
    monkeypatch.setattr(services, "MAX_SEGMENTS", 2)
    first = created(alice, GIVEN | {"name": "1"})
    created(alice, GIVEN | {"name": "2"})

    assert code(alice.call("POST", path(alice), GIVEN), 409) == "too_many_segments"
    created(bob)
    alice.call("DELETE", path(alice, first["segment_id"]))
    created(alice)


def test_the_audit_log_keeps_the_beginning_of_a_long_rule(alice):
    long = {"any": [attribute("plan", "eq", "p" * 250 + str(number)) for number in range(50)]}
    segment = created(alice, GIVEN | {"rule": long})
    last = long["any"][-1] | {"value": "free"}
    changed = {"any": [*long["any"][:-1], last]}
    answer = alice.call("PUT", path(alice, segment["segment_id"]), GIVEN | {"rule": changed})

    assert answer.json()["rule"] == changed
    entries = LogEntry.objects.filter(object_pk=segment["segment_id"]).order_by("id")
    made, edited = entries.values_list("changes", flat=True)
    assert made["rule"][1].startswith('{"any": [{"')
    assert made["rule"][1].endswith(" characters)")
    assert len(edited["rule"]) == 2
    assert all(len(each) < 4_100 for each in edited["rule"])

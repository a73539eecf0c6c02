"""`POST /channel/:channelId/explain` over HTTP."""

import json
import re

import pytest
from auditlog.models import LogEntry
from django.db.models.functions import Now

from notifications_app.reporting.judging import StepName, Verdict
from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from tests import factories
from tests.api.support import NOWHERE, errors
from tests.openapi import document
from tests.pipeline import support

PRO = {"attribute": "plan", "operator": "eq", "value": "pro"}


def explain(owner, body, channel=None):
    return owner.call("POST", f"/channel/{channel or owner.channel.id}/explain", body)


@pytest.fixture
def person(alice):
    return factories.make_person(alice.channel)


@pytest.fixture
def device(alice, person):
    return factories.add_subscription(alice.channel, {"plan": "free"}, person=person, language="de")


def test_a_send_is_explained_and_not_stored(alice, device):
    send = {"body": "Hi {{ plan }}", "personalize": True, "rule": PRO}

    response = explain(alice, {"send": send, "external_id": "user-42"})

    assert response.status_code == 200, response.content
    (found,) = response.json()["devices"]
    assert found["subscription_id"] == str(device.pk)
    assert (found["verdict"], found["because"]) == ("not_in_audience", "audience")
    assert [each["step"] for each in found["steps"]] == [
        "active",
        "platform",
        "audience",
        "content",
    ]
    assert found["steps"][2]["detail"] == 'plan is "free"; the rule wants "pro"'
    assert found["steps"][2]["rule"] == PRO
    assert found["steps"][3]["language"] == "de"
    assert found["steps"][3]["bytes"] > 0
    assert found["message"]["body"] == "Hi free"
    assert found["delivery"] is None
    assert alice.call("GET", f"/notifications/{alice.channel.id}").json() == []


def test_a_template_is_resolved_and_targets_have_their_values(alice, device):
    content = {"body": "Hi {{ vars.name }}", "personalize": True, "on_missing": "bounce"}
    template = factories.make_template(alice.channel, content=content)
    send = {"template_id": str(template.pk), "vars": {"name": "you"}}
    targets = [{"external_id": "user-42", "vars": {"name": "Ada"}}]

    (named,) = explain(
        alice, {"send": send | {"targets": targets}, "subscription_id": str(device.pk)}
    ).json()["devices"]
    (other,) = explain(
        alice,
        {"send": send | {"external_ids": ["user-43"]}, "subscription_id": str(device.pk)},
    ).json()["devices"]

    assert (named["verdict"], named["message"]["body"]) == ("gets", "Hi Ada")
    assert (other["verdict"], other["because"]) == ("not_in_audience", "audience")


def test_a_notification_is_explained_by_its_delivery(alice, device):
    notification = factories.make_notification(alice.channel)
    support.plan(notification)

    (found,) = explain(
        alice, {"notification_id": str(notification.pk), "external_id": "user-42"}
    ).json()["devices"]

    assert found["verdict"] == "waiting"
    assert found["delivery"]["status"] == "waiting"
    assert found["delivery"]["attempts"] == 0
    assert found["delivery"]["trace"] == notification.pk.hex


def test_the_document_has_each_step_and_verdict_of_a_response(alice, device):
    schemas = document()["components"]["schemas"]
    notification = factories.make_notification(alice.channel, paused_at=Now())
    local = {"body": "x", "local_at": "2030-01-01T09:00"}
    asked = [{"notification_id": str(notification.pk)}, {"send": local}]

    responses = [explain(alice, {**each, "external_id": "user-42"}).json() for each in asked]

    devices = [device for each in responses for device in each["devices"]]
    steps = {step["step"] for each in devices for step in each["steps"]}
    assert {"release", "paused"} <= steps <= set(schemas["ExplainStep"]["enum"])
    assert {each["verdict"] for each in devices} <= set(schemas["ExplainVerdict"]["enum"])
    assert list(StepName) == schemas["ExplainStep"]["enum"]
    assert list(Verdict) == schemas["ExplainVerdict"]["enum"]


def test_the_guide_has_each_step_and_verdict(settings):
    text = (settings.BASE_DIR / "docs" / "explain.md").read_text()

    rows = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))

    assert rows == {*StepName, *Verdict}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("", "not_combinable")]),
        ({"send": {"body": "x"}, "notification_id": NOWHERE}, [("", "not_combinable")]),
        (
            {"send": {"body": "x"}, "external_id": "a", "subscription_id": NOWHERE},
            [("", "not_combinable")],
        ),
        ({"send": 5, "external_id": "user-42"}, [("send", "not_an_object")]),
        (
            {"send": {"bdoy": "x"}, "external_id": "user-42"},
            [("send.body", "required"), ("send.bdoy", "unknown_field")],
        ),
        (
            {"send": {"body": "x", "segment_id": NOWHERE}, "external_id": "user-42"},
            [("send.segment_id", "segment_not_found")],
        ),
        (
            {"send": {"body": "x", "target_platforms": ["ios"]}, "external_id": "user-42"},
            [("send.target_platforms", "platform_not_enabled")],
        ),
        (
            {"send": {"template_id": NOWHERE}, "external_id": "user-42"},
            [("send.template_id", "template_not_found")],
        ),
        ({"sned": {}, "external_id": "user-42"}, [("sned", "unknown_field")]),
    ],
)
def test_errors_name_the_field(alice, device, body, expected):
    assert errors(explain(alice, body)) == expected


def test_things_of_others_are_not_found(alice, bob, device):
    notification = factories.make_notification(bob.channel)
    theirs = factories.add_subscription(bob.channel, person=factories.make_person(bob.channel, "b"))
    send = {"send": {"body": "x"}}
    for body in (
        send | {"external_id": "b"},
        send | {"subscription_id": str(theirs.pk)},
        {"notification_id": str(notification.pk), "external_id": "user-42"},
    ):
        assert explain(alice, body).status_code == 404
    assert explain(alice, send, channel=bob.channel.id).status_code == 404
    assert not LogEntry.objects.filter(action=3).exists()


def test_each_call_is_audited_without_the_external_id(alice, device, person):
    explain(alice, {"send": {"body": "x"}, "external_id": "user-42"})
    explain(alice, {"send": {"body": "x"}, "subscription_id": str(device.pk)})
    Subscription.objects.filter(pk=device.pk).update(person=None)
    explain(alice, {"send": {"body": "x"}, "subscription_id": str(device.pk)})

    entries = LogEntry.objects.filter(action=3).order_by("pk")
    assert [each.object_pk for each in entries] == [str(person.pk)] * 2 + [str(device.pk)]
    assert "user-42" not in json.dumps([each.additional_data for each in entries])


def test_a_person_with_many_devices_gets_a_bounded_response(alice, person):
    factories.add_subscriptions(alice.channel, 60, person=person)
    factories.add_subscriptions(alice.channel, 60, person=person, expired_at=sql.now())
    found = explain(alice, {"send": {"body": "x"}, "external_id": "user-42"}).json()
    assert [each["verdict"] for each in found["devices"]].count("gets") == 60
    assert len(found["devices"]) == 100

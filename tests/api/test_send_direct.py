"""POST /send-notification to people, subscriptions and rules, and what became of each target."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from notifications_app.models import Notification, Target
from pushsvc.common.ids import uuid7
from tests import factories
from tests.api.support import NOWHERE, accepted, code, errors
from tests.pipeline import support

pytestmark = pytest.mark.django_db
PRO = {"attribute": "plan", "operator": "eq", "value": "pro"}
BODY = {"body": "Your parcel is here."}
LATER = "2031-01-02T03:04:05.000Z"


def targets_of(notification):
    """As the send named them, in its order."""
    named = Target.objects.of(notification.id).values_list("external_id", "subscription_id")
    return [external_id or str(subscription_id) for external_id, subscription_id in named]


def read_targets(owner, notification, query=""):
    answer = owner.call("GET", f"/notification/{notification.id}/targets{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def audience(owner, notification):
    return owner.call("GET", f"/notification/{notification.id}/details").json()["audience"]


def dry_run(owner, **fields):
    answer = owner.send(BODY | fields | {"dry_run": True})
    assert answer.status_code == 200, answer.content
    return answer.json()


# --- what a send may name -------------------------------------------------------------------------


def test_targets_are_stored_once_in_the_order_of_the_send(alice):
    first, second = uuid7(), uuid7()
    people = accepted(alice, BODY | {"external_ids": ["b", "a", "b", "c"]})
    devices = accepted(alice, BODY | {"subscription_ids": [str(second), str(first), str(second)]})
    both = [{"subscription_id": str(first)}, {"external_id": "a"}, {"subscription_id": str(first)}]
    mixed = accepted(alice, BODY | {"targets": both})

    assert targets_of(people) == ["b", "a", "c"]
    assert targets_of(devices) == [str(second), str(first)]
    assert targets_of(mixed) == [str(first), "a"]
    assert audience(alice, mixed)["kind"] == "targets"
    assert read_targets(alice, mixed)[1] == {
        "external_id": "a",
        "subscription_id": None,
        "state": "waiting",
        "devices": 0,
    }


def test_a_rule_of_its_own_is_kept_with_the_send(alice):
    sent = accepted(alice, BODY | {"rule": PRO})
    found = audience(alice, sent)
    assert (found["kind"], found["rule"], found["segment_id"]) == ("rule", PRO, None)
    assert read_targets(alice, sent) == []


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"external_ids": []}, [("external_ids", "empty")]),
        ({"external_ids": "user-42"}, [("external_ids", "not_a_list")]),
        ({"external_ids": ["a", "null"]}, [("external_ids.1", "reserved_value")]),
        ({"external_ids": ["x" * 129]}, [("external_ids.0", "too_long")]),
        ({"external_ids": ["a\n"]}, [("external_ids.0", "malformed")]),
        ({"external_ids": [7]}, [("external_ids.0", "not_a_string")]),
        ({"external_ids": ["a"] * 1001}, [("external_ids", "too_many")]),
        ({"subscription_ids": ["a"]}, [("subscription_ids.0", "not_a_uuid")]),
        ({"subscription_ids": [NOWHERE] * 1001}, [("subscription_ids", "too_many")]),
        ({"targets": [{}]}, [("targets.0", "not_combinable")]),
        (
            {"targets": [{"external_id": "a", "subscription_id": NOWHERE}]},
            [("targets.0", "not_combinable")],
        ),
        (
            {"targets": [{"external_id": "undefined"}]},
            [("targets.0.external_id", "reserved_value")],
        ),
        (
            {"targets": [{"external_id": "a", "vars": {"order": "A-17"}}]},
            [("targets.0.vars", "not_combinable")],
        ),
        ({"targets": [{"external_id": "a"}] * 1001}, [("targets", "too_many")]),
        ({"rule": {"any": []}}, [("rule.any", "empty")]),
        (
            {"rule": {"all": [{"attribute": "plan"}]}},
            [("rule.all.0.operator", "required"), ("rule.all.0.value", "required")],
        ),
        ({"target_platforms": ["web", "all"]}, [("target_platforms", "not_combinable")]),
    ],
)
def test_what_names_nobody_rightly_is_refused(alice, given, found):
    assert errors(alice.send(BODY | given)) == found
    assert not Notification.objects.exists()


@pytest.mark.parametrize(
    "given",
    [
        {"external_ids": ["a"], "subscription_ids": [NOWHERE]},
        {"external_ids": ["a"], "targets": [{"external_id": "b"}]},
        {"rule": PRO, "external_ids": ["a"]},
        {"rule": PRO, "segment_id": NOWHERE},
        {"segment_id": NOWHERE, "subscription_ids": [NOWHERE]},
    ],
)
def test_a_send_has_one_audience(alice, given):
    assert code(alice.send(BODY | given), 400) == "not_combinable"
    assert not Notification.objects.exists()


@pytest.mark.parametrize("flags", [{}, {"dry_run": True}])
def test_a_rule_names_no_notification_of_another_channel(alice, bob, flags):
    theirs = accepted(bob, BODY)
    rule = {"notification": str(theirs.id), "outcome": "delivered"}
    assert code(alice.send(BODY | {"rule": rule} | flags), 400) == "notification_not_found"
    own = accepted(alice, BODY)
    assert alice.send(
        BODY | {"rule": rule | {"notification": str(own.id)}} | flags
    ).status_code in {
        200,
        202,
    }


def test_null_names_nobody(alice):
    unset = dict.fromkeys(("segment_id", "rule", "external_ids", "subscription_ids", "targets"))
    assert audience(alice, accepted(alice, BODY | unset))["kind"] == "channel"


@pytest.mark.parametrize(
    "ids",
    [[f"user-{n:05}-" + "x" * 48 for n in range(1000)], ["Zoë", "Zoe\u0308", "zoë", "ZOË"]],
    ids=["a thousand long ones", "some that differ in one character"],
)
def test_ids_are_stored_as_they_were_sent(alice, ids):
    sent = accepted(alice, BODY | {"external_ids": ids})
    assert targets_of(sent) == ids


def test_all_platforms_are_those_that_are_enabled_when_it_is_accepted(alice):
    alice.channel.ios_enabled = True
    alice.channel.save()
    sent = accepted(alice, BODY | {"target_platforms": ["all", "all"], "scheduled_at": LATER})
    alice.channel.android_enabled = True
    alice.channel.save()

    read = alice.call("GET", f"/notification/{sent.id}").json()

    assert read["target_platforms"] == ["web", "ios"]
    edited = alice.call("PATCH", f"/notification/{sent.id}", {"target_platforms": ["all"]}).json()
    assert edited["target_platforms"] == ["web", "android", "ios"]


def test_a_plain_send_makes_as_many_statements_as_before(alice):
    alice.send(BODY)
    with CaptureQueriesContext(connection) as captured:
        assert alice.send(BODY).status_code == 202
    made = [each["sql"] for each in captured if "notifications_app" in each["sql"]]
    assert len(made) == 1, made


# --- dry runs -------------------------------------------------------------------------------------


def test_a_dry_run_tells_the_unknown_from_those_who_would_get_it(alice, bob):
    person = factories.make_person(alice.channel, "a")
    factories.add_subscriptions(alice.channel, 2, person=person)
    factories.add_subscription(alice.channel, platform="ios", person=person)
    single = factories.add_subscription(alice.channel, person=person)
    factories.make_person(bob.channel, "theirs")
    foreign = factories.add_subscription(bob.channel)
    named = [{"external_id": "theirs"}, {"external_id": "a"}, {"subscription_id": str(foreign.id)}]
    named += [{"subscription_id": str(single.id)}, {"external_id": "nobody"}]

    found = dry_run(alice, targets=named)

    assert found["unknown"] == {
        "external_ids": ["theirs", "nobody"],
        "subscription_ids": [str(foreign.id)],
    }
    assert (found["platforms"]["web"]["audience"], found["platforms"]["web"]["estimated"]) == (
        3,
        False,
    )
    assert found["detail"] == "The targets also have devices on iOS, which get nothing."
    assert not Notification.objects.exists()


def test_a_dry_run_of_other_sends_says_nothing_of_targets(alice):
    factories.add_subscription(alice.channel, {"plan": "pro"})
    factories.add_subscription(alice.channel, {"plan": "free"})
    found = dry_run(alice, rule=PRO)
    assert found.keys() == {"platforms"}
    assert found["platforms"]["web"]["audience"] == 1


def test_a_dry_run_of_a_thousand_costs_as_many_statements_as_of_one(alice):
    counts = []
    dry_run(alice, external_ids=["user-0"])  # afterwards the key is known
    for number in (1, 1000):
        with CaptureQueriesContext(connection) as captured:
            dry_run(alice, external_ids=[f"user-{n}" for n in range(number)])
        counts.append(len(captured))
    assert counts[0] == counts[1]


# --- what became of them --------------------------------------------------------------------------


def test_each_target_has_its_state(alice):
    reached = factories.make_person(alice.channel, "reached")
    factories.add_subscriptions(alice.channel, 2, person=reached)
    phone = factories.make_person(alice.channel, "phone")
    factories.add_subscription(alice.channel, platform="ios", person=phone)
    single = factories.add_subscription(alice.channel)
    named = [{"external_id": each} for each in ("nobody", "reached", "phone")]
    sent = accepted(alice, BODY | {"targets": [*named, {"subscription_id": str(single.id)}]})
    assert {each["state"] for each in read_targets(alice, sent)} == {"waiting"}

    support.plan()

    found = read_targets(alice, sent)
    assert [(each["state"], each["devices"]) for each in found] == [
        ("unknown", 0),
        ("reached", 2),
        ("left_out", 0),
        ("reached", 1),
    ]
    assert [found[1], found[3]] == read_targets(alice, sent, "?state=reached")
    assert [found[2]] == read_targets(alice, sent, "?state=left_out")
    assert [found[0]] == read_targets(alice, sent, "?state=unknown")
    assert read_targets(alice, sent, "?state=waiting") == []


def test_of_a_cancelled_send_everybody_is_left_out(alice):
    sent = accepted(alice, BODY | {"external_ids": ["a"], "scheduled_at": LATER})
    alice.call("DELETE", f"/cancel-notification/{sent.id}")
    assert [each["state"] for each in read_targets(alice, sent)] == ["left_out"]


def test_targets_are_read_page_by_page(alice):
    sent = accepted(alice, BODY | {"external_ids": list("abcde")})
    path = f"/notification/{sent.id}/targets"
    first = alice.call("GET", f"{path}?state=waiting&limit=2")
    assert [each["external_id"] for each in first.json()] == ["a", "b"]
    assert f'{path}?state=waiting&limit=2&offset=2>; rel="next"' in first.headers["Link"]
    assert [each["external_id"] for each in read_targets(alice, sent, "?offset=4")] == ["e"]
    assert errors(alice.call("GET", f"{path}?state=lost")) == [("state", "not_a_choice")]


def test_an_erased_person_leaves_its_result_behind(alice, bob):
    sent = accepted(alice, BODY | {"external_ids": ["a", "b"]})
    theirs = accepted(bob, BODY | {"external_ids": ["a"]})

    Target.objects.anonymize(channel_id=alice.channel.id, external_id="a")

    assert [each["external_id"] for each in read_targets(alice, sent)] == [None, "b"]
    assert [each["external_id"] for each in read_targets(bob, theirs)] == ["a"]


# --- edits ----------------------------------------------------------------------------------------


def edit(owner, notification, **changes):
    return owner.call("PATCH", f"/notification/{notification.id}", changes)


def test_an_edit_replaces_the_targets_or_leaves_them(alice):
    sent = accepted(alice, BODY | {"external_ids": ["a", "b"], "scheduled_at": LATER})
    assert edit(alice, sent, body="Another").status_code == 200
    assert targets_of(sent) == ["a", "b"]

    device = str(uuid7())
    answer = edit(alice, sent, external_ids=None, subscription_ids=[device])
    assert answer.status_code == 200, answer.content
    assert targets_of(sent) == [device]
    assert audience(alice, sent)["kind"] == "targets"


def test_the_same_targets_are_no_edit(alice):
    sent = accepted(alice, BODY | {"external_ids": ["a", "b"], "scheduled_at": LATER})
    assert (
        edit(alice, sent, targets=[{"external_id": "a"}, {"external_id": "b"}]).status_code == 200
    )
    sent.refresh_from_db()
    assert sent.edited_at is None
    assert edit(alice, sent, external_ids=["b", "a"]).status_code == 200
    sent.refresh_from_db()
    assert (targets_of(sent), sent.edited_at is None) == (["b", "a"], False)


def test_empty_values_are_no_values(alice):
    bare, empty = {"external_id": "a"}, {"external_id": "a", "vars": {}}
    sent = accepted(alice, BODY | {"targets": [bare, empty, bare], "scheduled_at": LATER})
    assert targets_of(sent) == ["a"]

    assert edit(alice, sent, targets=[empty]).status_code == 200

    sent.refresh_from_db()
    assert sent.edited_at is None


def test_values_of_targets_need_personalize_after_an_edit_too(alice):
    own = [{"external_id": "a", "vars": {"order": "A-17"}}]
    sent = accepted(alice, BODY | {"targets": own, "personalize": True, "scheduled_at": LATER})

    assert errors(edit(alice, sent, personalize=False)) == [("personalize", "not_combinable")]
    assert edit(alice, sent, title="Another").status_code == 200
    bare = [{"external_id": "a"}]
    assert edit(alice, sent, personalize=False, targets=bare).status_code == 200


def test_an_edit_changes_a_rule(alice):
    sent = accepted(alice, BODY | {"rule": PRO, "scheduled_at": LATER})
    other = {"not": PRO}
    assert edit(alice, sent, rule=other, segment_id=None).status_code == 200
    assert audience(alice, sent)["rule"] == other


KINDS = {
    "channel": {},
    "rule": {"rule": PRO},
    "targets": {"external_ids": ["a"]},
}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("channel", {"rule": PRO}),
        ("channel", {"subscription_ids": [NOWHERE]}),
        ("rule", {"rule": None}),
        ("rule", {"segment_id": NOWHERE}),
        ("rule", {"external_ids": ["a"]}),
        ("targets", {"external_ids": None}),
        ("targets", {"rule": PRO}),
        ("targets", {"segment_id": NOWHERE}),
        ("targets", {"subscription_ids": [NOWHERE], "rule": PRO}),
    ],
)
def test_no_edit_changes_the_kind_of_an_audience(alice, kind, changes):
    sent = accepted(alice, BODY | KINDS[kind] | {"scheduled_at": LATER})
    assert code(edit(alice, sent, **changes), 400) == "not_combinable"
    assert audience(alice, sent)["kind"] == kind

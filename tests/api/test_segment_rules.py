"""Segment rules: which are valid, and what they mean in SQL."""

import json

import pytest
from django.db.models.functions import Now
from hypothesis import given, settings
from hypothesis import strategies as st

from channels_app.models import ChannelCounter
from notifications_app.models import Delivery
from notifications_app.states import DeliveryStatus
from pushsvc.common.errors import MAX_ERRORS
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from subscriptions_app.audiences.sizes import Size, audience_size, segment_sample
from subscriptions_app.models import LastClick, Person, Subscription
from subscriptions_app.segments.describe import rule_text
from subscriptions_app.segments.rules import MAX_DEPTH, MAX_LEAVES, rule_errors
from tests import factories, segments
from tests.api.support import NOWHERE
from tests.segments import CLICKED, PLAN, RANDOM, attribute, field

SOME_IDS = [str(uuid7()) for _ in range(4)]
TOO_MANY = [("rule", "too_many")]


@pytest.fixture
def channel(alice):
    return alice.channel


def errors(rule):
    return [(error.attr, error.code) for error in rule_errors(rule)]


def reached(channel, rule):
    return segment_sample(channel.id, rule, limit=1000)


# --- SQL ------------------------------------------------------------------------------------------


_NOTIFICATIONS = [str(uuid7()) for _ in range(2)]


@pytest.fixture
def drawn(db):
    """What each example draws: hypothesis looks into these strategies once, not in each example."""
    now = sql.now()
    rules = st.lists(segments.rules(now, _NOTIFICATIONS), min_size=6, max_size=6)
    return now, segments.rows(now), rules


@settings(RANDOM, max_examples=60)
@given(data=st.data())
def test_a_rule_matches_the_same_subscriptions_in_sql_and_in_plain_python(channel, drawn, data):
    now, some_rows, some_rules = drawn
    Subscription.objects.all().delete()
    ChannelCounter.objects.all().delete()
    Delivery.objects.all().delete()
    rows = factories.add_each(channel, data.draw(some_rows))
    facts = random_facts(channel, rows, data, now)

    for rule in data.draw(some_rules):
        assert errors(rule) == []
        expected = {row.id for row in rows if segments.matches(rule, row, now, facts)}
        assert {row.id for row in reached(channel, rule)} == expected

    sizes = audience_size(channel.id, rule, segments.PLATFORMS)
    for platform in segments.PLATFORMS:
        count = sum(row.platform == platform for row in rows if row.id in expected)
        assert sizes[platform] == Size(count, estimated=False)


_ENDED = st.tuples(st.sampled_from(["delivered", "bounced"]), st.booleans(), st.booleans())
_SOME_TAGS = st.sets(st.sampled_from(segments.TAGS))
_SOME_NOTIFICATIONS = st.sets(st.sampled_from(_NOTIFICATIONS))


_CLICKED_AGO = st.none() | segments.HALF_DAYS


def random_facts(channel, rows, data, now):
    """Tags, persons, last clicks and outcomes of the rows."""
    facts = segments.Facts()
    person, _ = Person.objects.get_or_create(channel=channel, external_id="user-42")
    for row in rows:
        facts.tags[row.id] |= data.draw(_SOME_TAGS)
        factories.add_tags([row], *facts.tags[row.id])
        if (ago := data.draw(_CLICKED_AGO)) is not None:
            facts.clicks[row.id] = now - ago
            LastClick.objects.create(subscription=row, clicked_at=now - ago)
        row.person = data.draw(st.sampled_from([None, person]))
        row.save(update_fields=["person"])
        for id_ in data.draw(_SOME_NOTIFICATIONS):
            status, received, clicked = facts.ledger[id_, row.id] = data.draw(_ENDED)
            Delivery.objects.create(
                notification_id=id_,
                subscription_id=row.id,
                batch_id=1,
                status=DeliveryStatus[status.upper()],
                received_at=Now() if received else None,
                clicked_at=Now() if clicked else None,
            )
    return facts


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (attribute("n", "eq", 5), ["5", "5.0"]),
        (attribute("n", "eq", "5"), ['"5"']),
        (attribute("n", "ne", 5), ['"10"', '"5"', '"9"', "none"]),
        (attribute("n", "in", [5, "9"]), ['"9"', "5", "5.0"]),
        (attribute("n", "gt", 4), ["5", "5.0"]),
        (attribute("n", "lt", "5"), ['"10"']),
        (attribute("n", "gte", "5"), ['"5"', '"9"']),
        (attribute("n", "exists", True), ['"10"', '"5"', '"9"', "5", "5.0"]),
        (attribute("n", "exists", False), ["none"]),
        (attribute("n", "contains", "0"), ['"10"']),
        (attribute("n", "starts_with", "1"), ['"10"']),
        ({"not": attribute("n", "gt", 4)}, ['"10"', '"5"', '"9"', "none"]),
    ],
)
def test_types_are_respected_and_a_missing_attribute_matches_little(channel, rule, expected):
    for label in ["5", "5.0", '"5"', '"9"', '"10"']:
        factories.add_subscription(channel, {"n": json.loads(label), "label": label})
    factories.add_subscription(channel, {"label": "none"})

    assert sorted(row.attributes["label"] for row in reached(channel, rule)) == expected


def test_text_is_ordered_by_code_points_and_has_no_wildcards(channel):
    for text in ["Z", "a", "é", "\uffff", "😀", "50%", "50_"]:
        factories.add_subscription(channel, {"t": text})

    def texts(operator, value):
        found = reached(channel, attribute("t", operator, value))
        return sorted(row.attributes["t"] for row in found)

    assert texts("gt", "Z") == ["a", "é", "\uffff", "😀"]
    assert texts("gt", "é") == ["\uffff", "😀"]
    assert texts("contains", "%") == ["50%"]
    assert texts("starts_with", "50_") == ["50_"]
    assert texts("contains", "z") == []


# --- errors ---------------------------------------------------------------------------------------


def nested(depth):
    rule = PLAN
    for _ in range(depth - 1):
        rule = {"not": rule}
    return rule


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (None, [("rule", "not_an_object")]),
        ([], [("rule", "not_an_object")]),
        ({}, [("rule", "not_a_rule")]),
        ({"all": [PLAN], "any": [PLAN]}, [("rule", "not_a_rule")]),
        ({"operator": "eq", "value": 5}, [("rule", "not_a_rule")]),
        ({"attribute": "a", "field": "platform"}, [("rule", "not_a_rule")]),
        ({"all": []}, [("rule.all", "empty")]),
        ({"any": {}}, [("rule.any", "not_a_list")]),
        ({"not": [PLAN]}, [("rule.not", "not_an_object")]),
        ({"all": [PLAN, {"not": 5}]}, [("rule.all.1.not", "not_an_object")]),
        ({"all": [PLAN], "name": "x"}, [("rule.name", "unknown_field")]),
        ({**PLAN, "case": True}, [("rule.case", "unknown_field")]),
        ({"attribute": "a"}, [("rule.operator", "required"), ("rule.value", "required")]),
        ({"attribute": "a", "operator": "eq"}, [("rule.value", "required")]),
        ({"field": "platform", "value": "web"}, [("rule.operator", "required")]),
        (attribute("", "eq", 5), [("rule.attribute", "blank")]),
        (attribute(5, "eq", 5), [("rule.attribute", "not_a_string")]),
        (attribute("a" * 51, "eq", 5), [("rule.attribute", "too_long")]),
        (attribute("a\x00", "eq", 5), [("rule.attribute", "malformed")]),
        (attribute("a", "like", 5), [("rule.operator", "not_a_choice")]),
        (attribute("a", None, 5), [("rule.operator", "not_a_string")]),
        (attribute("a", ["eq"], 5), [("rule.operator", "not_a_string")]),
        (attribute("a", "eq", None), [("rule.value", "not_a_string_or_number")]),
        (attribute("a", "eq", True), [("rule.value", "not_a_string_or_number")]),
        (attribute("a", "gt", [5]), [("rule.value", "not_a_string_or_number")]),
        (attribute("a", "eq", float("nan")), [("rule.value", "out_of_range")]),
        (attribute("a", "eq", 10**400), [("rule.value", "out_of_range")]),
        (attribute("a", "eq", "x" * 256), [("rule.value", "too_long")]),
        (attribute("a", "eq", "\ud800"), [("rule.value", "malformed")]),
        (attribute("a", "in", "x"), [("rule.value", "not_a_list")]),
        (attribute("a", "in", []), [("rule.value", "empty")]),
        (attribute("a", "in", [1, None]), [("rule.value.1", "not_a_string_or_number")]),
        (attribute("a", "in", [1] * 101), [("rule.value", "too_many")]),
        (attribute("a", "exists", "yes"), [("rule.value", "not_a_boolean")]),
        (attribute("a", "exists", 1), [("rule.value", "not_a_boolean")]),
        (attribute("a", "contains", 5), [("rule.value", "not_a_string")]),
        (attribute("a", "contains", ""), [("rule.value", "blank")]),
        (attribute("a", "starts_with", ""), [("rule.value", "blank")]),
        (field("plan", "eq", "pro"), [("rule.field", "not_a_choice")]),
        (field(None, "eq", "pro"), [("rule.field", "not_a_string")]),
        (field("platform", "gt", "web"), [("rule.operator", "not_a_choice")]),
        (field("platform", "exists", True), [("rule.operator", "not_a_choice")]),
        (field("platform", "eq", "tv"), [("rule.value", "not_a_choice")]),
        (field("platform", "in", ["web", "tv"]), [("rule.value.1", "not_a_choice")]),
        (field("created_at", "eq", "2026-01-01T00:00Z"), [("rule.operator", "not_a_choice")]),
        (field("created_at", "contains", "x"), [("rule.operator", "not_a_choice")]),
        (field("created_at", "gt", "2026-01-01"), [("rule.value", "not_a_timestamp")]),
        (field("created_at", "gt", 5), [("rule.value", "not_a_timestamp")]),
        (field("last_clicked_at", "eq", 5), [("rule.operator", "not_a_choice")]),
        (field("last_clicked_at", "exists", 1), [("rule.value", "not_a_boolean")]),
        (field("country", "eq", "DEU"), [("rule.value", "too_long")]),
        (field("country", "eq", "XX"), [("rule.value", "not_a_country")]),
        (field("country", "in", ["DE", 5]), [("rule.value.1", "not_a_string")]),
        (field("country", "starts_with", "D"), [("rule.operator", "not_a_choice")]),
        (field("app_version", "lt", "2.x"), [("rule.value", "not_a_version")]),
        (field("app_version", "lt", "1.2.3.4.5.6.7.8.9"), [("rule.value", "not_a_version")]),
        (field("app_version", "lt", 2.1), [("rule.value", "not_a_string")]),
        (field("app_version", "in", ["2.1"]), [("rule.operator", "not_a_choice")]),
        (field("last_seen_at", "lt", {}), [("rule.value.days_ago", "not_a_number")]),
        (field("last_seen_at", "lt", {"days_ago": "5"}), [("rule.value.days_ago", "not_a_number")]),
        (field("last_seen_at", "lt", {"days_ago": 5.0}), [("rule.value.days_ago", "not_a_number")]),
        (field("last_seen_at", "lt", {"days_ago": 0}), [("rule.value.days_ago", "out_of_range")]),
        (
            field("last_seen_at", "lt", {"days_ago": 36_501}),
            [("rule.value.days_ago", "out_of_range")],
        ),
        (
            field("last_seen_at", "lt", {"days_ago": 5, "hours_ago": 1}),
            [("rule.value.hours_ago", "unknown_field")],
        ),
        (field("language", "gt", "de"), [("rule.operator", "not_a_choice")]),
        (field("language", "eq", ""), [("rule.value", "blank")]),
        (field("language", "starts_with", "x" * 36), [("rule.value", "too_long")]),
        (field("language", "in", ["de", 5]), [("rule.value.1", "not_a_string")]),
        (field("language", "eq", "german"), [("rule.value", "not_a_language")]),
        (field("language", "in", ["pt_BR", "d"]), [("rule.value.1", "not_a_language")]),
        (field("timezone", "in", ["utc", "Mars/Base"]), [("rule.value.1", "not_a_timezone")]),
        (field("timezone", "ne", "Europe/Berlin"), [("rule.operator", "not_a_choice")]),
        (field("timezone", "eq", "x" * 65), [("rule.value", "too_long")]),
        (field("external_id", "eq", "user-42"), [("rule.operator", "not_a_choice")]),
        (field("external_id", "exists", "yes"), [("rule.value", "not_a_boolean")]),
        ({"tag": 5}, [("rule.tag", "not_a_string")]),
        ({"tag": ""}, [("rule.tag", "not_a_tag")]),
        ({"tag": "a b"}, [("rule.tag", "not_a_tag")]),
        ({"tag": "x" * 65}, [("rule.tag", "not_a_tag")]),
        ({"tag": "a", "operator": "eq"}, [("rule.operator", "unknown_field")]),
        ({"tag": "a", **PLAN}, [("rule", "not_a_rule")]),
        (CLICKED | {"notification": 5}, [("rule.notification", "not_a_uuid")]),
        (CLICKED | {"outcome": "opened"}, [("rule.outcome", "not_a_choice")]),
        ({"notification": NOWHERE}, [("rule.outcome", "required")]),
        (CLICKED | {"value": 5}, [("rule.value", "unknown_field")]),
        ({"any": [CLICKED | {"notification": str(uuid7())} for _ in range(6)]}, TOO_MANY),
        (nested(MAX_DEPTH + 1), [("rule" + ".not" * MAX_DEPTH, "too_deep")]),
        ({"all": [PLAN] * (MAX_LEAVES + 1)}, [("rule", "too_many")]),
        ({"all": [{"any": [PLAN] * 2}] * 26}, [("rule", "too_many")]),
        ({"all": [{"any": [PLAN] * 26}, {"any": [PLAN] * 26}, 5]}, [("rule", "too_many")]),
    ],
)
def test_every_error_has_its_path(rule, expected):
    assert errors(rule) == expected


class Watched(dict):
    """Records that it was read."""

    is_seen = False

    def __contains__(self, name):
        self.is_seen = True
        return super().__contains__(name)


def test_the_check_stops_once_there_are_too_many_conditions():
    last = Watched(PLAN)

    assert errors({"all": [{"any": [PLAN] * 26}, {"any": [PLAN] * 26}, last]})

    assert not last.is_seen


def test_the_check_stops_once_there_are_more_errors_than_are_shown():
    choices = attribute("a", "in", [None] * 30)
    last = Watched(PLAN)

    assert len(errors({"all": [choices, last, choices]})) > MAX_ERRORS
    assert last.is_seen

    last = Watched(PLAN)
    assert errors({"all": [choices, choices, last]})
    assert not last.is_seen


def test_all_errors_are_reported_at_once():
    rule = {
        "all": [
            attribute("plan", "is", "pro"),
            {"any": [field("platform", "eq", "tv"), {"not": {"any": []}}]},
            attribute("a", "in", [None, "x", False]),
        ],
    }
    assert errors(rule) == [
        ("rule.all.0.operator", "not_a_choice"),
        ("rule.all.1.any.0.value", "not_a_choice"),
        ("rule.all.1.any.1.not.any", "empty"),
        ("rule.all.2.value.0", "not_a_string_or_number"),
        ("rule.all.2.value.2", "not_a_string_or_number"),
    ]


@pytest.mark.parametrize(
    "rule",
    [
        nested(MAX_DEPTH),
        {"all": [PLAN] * MAX_LEAVES},
        attribute("a" * 50, "eq", "x" * 255),
        attribute("a", "in", [1] * 100),
        attribute("a", "eq", ""),
        attribute("a", "lt", 1.7976931348623157e308),
        field("created_at", "gt", "0001-01-01T00:00:00Z"),
        field("created_at", "lte", "9999-12-31T23:59:59.999999Z"),
        field("last_seen_at", "lt", {"days_ago": 36_500}),
        {"any": [CLICKED | {"notification": each} for each in [NOWHERE, *SOME_IDS] * 3]},
        {"all": [{"tag": "x" * 64}] * MAX_LEAVES},
        field("language", "eq", "de-x-" + "abcdefgh-" * 3 + "abc"),
    ],
)
def test_a_rule_at_the_limits_is_valid(channel, rule):
    assert errors(rule) == []
    reached(channel, rule)


_JSON = st.recursive(
    st.none() | st.booleans() | segments.SCALARS | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "all",
                    "any",
                    "not",
                    "attribute",
                    "field",
                    "operator",
                    "value",
                    "days_ago",
                    "x",
                    "tag",
                    "notification",
                    "outcome",
                ]
            ),
            inner
            | st.sampled_from(["eq", "in", "exists", "gt", "platform", "created_at", "web"])
            | st.sampled_from(["language", "timezone", "external_id", "de", "clicked", NOWHERE]),
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(RANDOM, max_examples=200)
@given(rule=_JSON)
def test_any_json_is_a_working_rule_or_has_errors(channel, rule):
    found = errors(rule)
    if found:
        assert all(attr == "rule" or attr.startswith("rule.") for attr, _ in found)
    else:
        reached(channel, rule)
        assert rule_text(rule)

"""What the OpenAPI document and a description say of segment rules."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from drf_spectacular.generators import SchemaGenerator
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from subscriptions_app.segments.describe import on_clock, rule_text
from subscriptions_app.segments.rules import rule_errors
from tests import segments
from tests.api.support import NOWHERE
from tests.segments import CLICKED, PLAN, RANDOM, attribute, field

# --- the OpenAPI document -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def documented():
    """Whether this is a rule by the OpenAPI document."""
    document = SchemaGenerator().get_schema(request=None, public=True)
    schema = {
        **document["components"]["schemas"]["SegmentRule"],
        "components": document["components"],
    }
    return Draft202012Validator(schema).is_valid


@settings(RANDOM, max_examples=100)
@given(rule=segments.rules(datetime(2026, 11, 20, tzinfo=UTC), [NOWHERE]))
def test_the_document_allows_every_valid_rule(documented, rule):
    assert documented(rule)


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"all": []},
        {"all": [PLAN], "any": [PLAN]},
        {"not": [PLAN]},
        {**PLAN, "x": 1},
        {"attribute": "a", "operator": "eq"},
        attribute("a", "like", 5),
        attribute("a", "in", 5),
        attribute("a", "eq", [5]),
        attribute("a", "exists", 1),
        attribute("a", "contains", ""),
        field("plan", "eq", "web"),
        field("platform", "eq", "tv"),
        field("platform", "gt", "web"),
        field("platform", "in", "web"),
        field("created_at", "eq", "2026-11-20T15:11:00Z"),
        field("created_at", "gt", {"days_ago": 0}),
        field("language", "gt", "de"),
        field("timezone", "starts_with", "Europe"),
        field("external_id", "exists", 1),
        {"tag": "a b"},
        {"tag": "a", "value": 5},
        {"notification": NOWHERE},
        CLICKED | {"outcome": "opened"},
    ],
)
def test_the_document_forbids_invalid_rules(documented, rule):
    assert rule_errors(rule)
    assert not documented(rule)


# --- descriptions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (PLAN, 'plan is "pro"'),
        (attribute("age", "ne", 5), "age is not 5"),
        (attribute("age", "gt", 5), "age is over 5"),
        (attribute("age", "lte", 5.5), "age is at most 5.5"),
        (attribute("name", "gte", "M"), 'name is "M" or after'),
        (attribute("plan", "in", ["pro", 7]), 'plan is "pro" or 7'),
        (attribute("plan", "exists", True), "plan is set"),
        (attribute("plan", "exists", False), "plan is not set"),
        (attribute("city", "contains", "Köln"), 'city contains "Köln"'),
        (attribute("city", "starts_with", "K"), 'city starts with "K"'),
        (field("platform", "eq", "web"), "platform is web"),
        (field("platform", "ne", "web"), "platform is not web"),
        (field("platform", "in", ["ios", "android"]), "platform is ios or android"),
        (field("created_at", "gte", {"days_ago": 7}), "subscribed in the last 7 days"),
        (field("last_seen_at", "lt", {"days_ago": 1}), "last seen more than 1 day ago"),
        (
            field("created_at", "lt", "2026-01-01T00:00:00Z"),
            "subscribed before 2026-01-01T00:00:00Z",
        ),
        ({"tag": "team-7"}, "has the tag team-7"),
        ({"not": {"tag": "team-7"}}, "not (has the tag team-7)"),
        (field("language", "starts_with", "de"), 'language starts with "de"'),
        (
            field("timezone", "in", ["Europe/Berlin", "Asia/Tokyo"]),
            'timezone is "Europe/Berlin" or "Asia/Tokyo"',
        ),
        (field("country", "in", ["DE", "AT"]), 'country is "DE" or "AT"'),
        (field("app_version", "lt", "2.10"), "app version is under 2.10"),
        (field("app_version", "eq", "2.10"), "app version is 2.10"),
        (field("app_version", "exists", False), "app version is not set"),
        (field("last_clicked_at", "gte", {"days_ago": 7}), "last clicked in the last 7 days"),
        (field("last_clicked_at", "exists", False), "has never clicked"),
        (field("external_id", "exists", True), "belongs to a person"),
        (field("external_id", "exists", False), "belongs to no person"),
        (CLICKED, f"notification {NOWHERE} was clicked (while its deliveries are kept)"),
        ({"all": [PLAN]}, 'plan is "pro"'),
        ({"not": {"any": [PLAN, attribute("a", "eq", 1)]}}, 'not (plan is "pro" or a is 1)'),
        (
            {"all": [{"any": [PLAN, attribute("a", "eq", 1)]}, attribute("b", "eq", 2)]},
            '(plan is "pro" or a is 1) and b is 2',
        ),
        (
            {"all": [PLAN, field("last_seen_at", "gte", {"days_ago": 30})]},
            'plan is "pro" and last seen in the last 30 days',
        ),
    ],
)
def test_a_rule_is_described_in_words(rule, words):
    assert rule_text(rule) == words


def test_moments_are_described_on_the_clock_of_a_reader():
    moment = field("created_at", "gte", "2026-11-24T07:30:00Z")
    rule = {"all": [PLAN, {"not": {"any": [moment, field("last_seen_at", "lt", {"days_ago": 3})]}}]}

    words = rule_text(on_clock(rule, ZoneInfo("America/Los_Angeles")))

    assert "subscribed at or after 2026-11-23 23:30" in words
    assert "more than 3 days ago" in words
    assert "2026-11-24T07:30:00Z" in rule_text(rule)


@settings(RANDOM, max_examples=100)
@given(rule=segments.rules(datetime(2026, 11, 20, tzinfo=UTC), [NOWHERE]))
def test_every_valid_rule_is_described_on_a_clock(rule):
    assert rule_text(on_clock(rule, ZoneInfo("Asia/Kolkata")))

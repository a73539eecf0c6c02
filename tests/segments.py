"""The rules of docs/segments.md in plain Python, and random rules and subscriptions."""

import itertools
import json
from collections import defaultdict
from dataclasses import dataclass
from dataclasses import field as of
from datetime import timedelta
from decimal import Decimal

from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pushsvc.common.store import sql
from pushsvc.common.timestamps import parse_timestamp
from subscriptions_app.models import Subscription
from tests.api.support import NOWHERE

PLATFORMS = ("web", "android", "ios")
TIMES = ("created_at", "last_seen_at", "last_clicked_at")
TAGS = ("a", "b", "team-7")
LANGUAGES = ("de", "de-AT", "en")
SPELLINGS = {"de_AT": "de-AT", "EN": "en", "europe/BERLIN": "Europe/Berlin"}
ZONES = ("Europe/Berlin", "Asia/Tokyo", "Asia/Calcutta")
COUNTRIES = {"Europe/Berlin": "DE", "Asia/Tokyo": "JP", "Asia/Calcutta": "IN"}
VERSIONS = ("2.9", "2.10", "2.10.0", "10", "0", "0.0.1", "2.010")
ODD_VERSIONS = ("v2.10-beta.1", "2.10 (5)", "2.", "2..1", "x2", "2.9.1.x", "1234567890", "")
EXISTING = ("external_id", "last_clicked_at", "app_version")
OUTCOMES = ("delivered", "bounced", "received", "clicked", "not_clicked", "not_received")


def attribute(name, operator, value):
    return {"attribute": name, "operator": operator, "value": value}


def field(name, operator, value):
    return {"field": name, "operator": operator, "value": value}


def language(operator, value):
    return field("language", operator, value)


PLAN = attribute("plan", "eq", "pro")
CLICKED = {"notification": NOWHERE, "outcome": "clicked"}


@dataclass
class Facts:
    """What is known of devices beside their rows: tags and the last click by the device's id, and
    (status, received, clicked) by the ids of notification and device."""

    clicks: dict = of(default_factory=dict)
    tags: defaultdict = of(default_factory=lambda: defaultdict(set))
    ledger: dict = of(default_factory=dict)


NOTHING = Facts()

# Examples that are the same in each run.
RANDOM = settings(
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# --- what a rule means ----------------------------------------------------------------------------


def matches(rule, row, now, facts=NOTHING):
    if "all" in rule:
        return all(matches(each, row, now, facts) for each in rule["all"])
    if "any" in rule:
        return any(matches(each, row, now, facts) for each in rule["any"])
    if "not" in rule:
        return not matches(rule["not"], row, now, facts)
    if "tag" in rule:
        return rule["tag"] in facts.tags[row.id]
    if "notification" in rule:
        return _ended(facts.ledger.get((rule["notification"], row.id)), rule["outcome"])
    operator, value = rule["operator"], rule["value"]
    if "attribute" in rule:
        return _has(row.attributes, rule["attribute"], operator, value)
    if rule["field"] == "external_id":
        return (row.person_id is not None) == value
    if rule["field"] == "language":
        return _speaks(row.language.lower(), operator, _as_devices(value))
    if rule["field"] == "timezone":
        value = _as_devices(value)
        return row.timezone == value if operator == "eq" else row.timezone in value
    if rule["field"] == "platform":
        return {
            "eq": row.platform == value,
            "ne": row.platform != value,
            "in": row.platform in value,
        }[operator]
    if rule["field"] == "country":
        return _lives(COUNTRIES.get(row.timezone), operator, value)
    if rule["field"] == "app_version":
        return _runs(row.attributes.get("app_version"), operator, value)
    if operator == "exists":
        return (row.id in facts.clicks) == value
    moment = {
        "created_at": row.created_at,
        "last_seen_at": row.registered_at,
        "last_clicked_at": facts.clicks.get(row.id),
    }[rule["field"]]
    return moment is not None and _compares(moment, operator, _moment(value, now))


def _lives(own, operator, value):
    if operator == "in":
        return own in [each.upper() for each in value]
    return (own == value.upper()) == (operator == "eq")


def _runs(own, operator, value):
    own = _version("" if own is None else own if isinstance(own, str) else json.dumps(own))
    if operator == "exists":
        return (own is not None) == value
    if operator == "ne":
        return own != _version(value)
    if own is None:
        return False
    wanted = _version(value)
    return own == wanted if operator == "eq" else _compares(own, operator, wanted)


def _version(text):
    """Its numbers without zeros at the end; None for a text that is no version."""
    text = text.removeprefix("v")
    begin = "".join(itertools.takewhile(lambda each: each in "0123456789.", text))
    numbers = begin.split(".")
    if len(numbers) > 8 or not all(each and len(each) < 10 for each in numbers):
        return None
    found = [int(each) for each in numbers]
    while len(found) > 1 and not found[-1]:
        found.pop()
    return found


def _as_devices(value):
    """The value in the spelling of devices."""
    if isinstance(value, list):
        return [_as_devices(each) for each in value]
    return SPELLINGS.get(value, value)


def _ended(delivery, outcome):
    if delivery is None:
        return False
    status, received, clicked = delivery
    return {
        "delivered": status == "delivered",
        "bounced": status == "bounced",
        "received": received,
        "clicked": clicked,
        "not_clicked": status == "delivered" and not clicked,
        "not_received": status == "delivered" and not received,
    }[outcome]


def _speaks(own, operator, value):
    if operator == "in":
        return own in [each.lower() for each in value]
    return {
        "eq": own == value.lower(),
        "ne": own != value.lower(),
        "starts_with": own.startswith(value.lower()),
    }[operator]


def _has(attributes, name, operator, value):
    is_there = name in attributes
    own = attributes.get(name)
    if operator == "exists":
        return is_there == value
    if operator == "ne":
        return not (is_there and _same(own, value))
    if not is_there:
        return False
    if operator == "eq":
        return _same(own, value)
    if operator == "in":
        return any(_same(own, each) for each in value)
    if operator == "contains":
        return isinstance(own, str) and value in own
    if operator == "starts_with":
        return isinstance(own, str) and own.startswith(value)
    if isinstance(own, str) != isinstance(value, str):
        return False
    return _compares(_exact(own), operator, _exact(value))


def _same(one, other):
    return isinstance(one, str) == isinstance(other, str) and _exact(one) == _exact(other)


def _exact(value):
    """A number as it was written: 0.1 is a tenth."""
    return value if isinstance(value, str) else Decimal(repr(value))


def _compares(one, operator, other):
    return {"gt": one > other, "gte": one >= other, "lt": one < other, "lte": one <= other}[
        operator
    ]


def _moment(value, now):
    if isinstance(value, str):
        return parse_timestamp(value)
    return now - timedelta(hours=24 * value["days_ago"])


# --- random rules and subscriptions ---------------------------------------------------------------

# Few enough that rules and rows share some, with characters that SQL or a pattern may misread.
_TEXT = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
_USUAL, _ODD = ["plan", "age"], ["é", "%(rule_0)s", "a'b\"c\\", "{0}", "?", "0"]
NAMES = st.sampled_from(_USUAL) | st.sampled_from(_ODD)
TEXTS = st.one_of(
    st.sampled_from(["", "5", "pro", "Pro", "p"]),
    st.sampled_from(["prof", "5.0", "p%", "p_o", "%", "\\", "'", "é", "Z", "a", "😀", "\uffff"]),
    st.text(_TEXT, max_size=5),
)
NUMBERS = st.one_of(
    st.sampled_from([0, 5, 5.0, 5.5, -1]),
    st.sampled_from([-0.0, 0.1, 2**53, 2**53 + 1, 1e23, 10**23, 5e-324]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)
SCALARS = TEXTS | NUMBERS
_COMPARISONS = st.sampled_from(["gt", "gte", "lt", "lte"])
_FILLED = TEXTS.filter(bool)
HALF_DAYS = st.integers(min_value=-1, max_value=8).map(lambda days: timedelta(days=days + 0.5))


def attributes():
    versions = st.sampled_from([*VERSIONS, *ODD_VERSIONS, 2.1, 2])
    return st.builds(
        lambda usual, version: usual | version,
        st.dictionaries(NAMES, SCALARS, min_size=1, max_size=4),
        st.fixed_dictionaries({}, optional={"app_version": versions}),
    )


def rules(now, notifications=()):
    """Rules of up to 8 levels. Their times come close to those of `rows`."""
    return st.recursive(
        _leaves(now) | _of_people() | _retargeting(notifications),
        lambda inner: (
            st.builds(lambda each: {"all": each}, st.lists(inner, min_size=1, max_size=3))
            | st.builds(lambda each: {"any": each}, st.lists(inner, min_size=1, max_size=3))
            | st.builds(lambda each: {"not": each}, inner)
        ),
        max_leaves=6,
    ).filter(lambda rule: levels(rule) <= 8)


def levels(rule):
    inner = rule.get("all") or rule.get("any") or ([rule["not"]] if "not" in rule else [])
    return 1 + max((levels(each) for each in inner), default=0)


def _leaves(now):
    moments = HALF_DAYS.map(lambda ago: (now - ago).isoformat()) | st.builds(
        lambda days: {"days_ago": days}, st.integers(min_value=1, max_value=9)
    )
    platforms = st.sampled_from(PLATFORMS)
    return (
        st.builds(attribute, NAMES, st.sampled_from(["eq", "ne"]) | _COMPARISONS, SCALARS)
        | st.builds(attribute, NAMES, st.just("in"), st.lists(SCALARS, min_size=1, max_size=3))
        | st.builds(attribute, NAMES, st.just("exists"), st.booleans())
        | st.builds(attribute, NAMES, st.sampled_from(["contains", "starts_with"]), _FILLED)
        | st.builds(field, st.just("platform"), st.sampled_from(["eq", "ne"]), platforms)
        | st.builds(field, st.just("platform"), st.just("in"), st.lists(platforms, min_size=1))
        | st.builds(field, st.sampled_from(TIMES), _COMPARISONS, moments)
    )


def _of_people():
    languages = st.sampled_from([*LANGUAGES, "DE-at", "de_AT", "EN", "fr"])
    zones = st.sampled_from([*ZONES, "europe/BERLIN"])
    countries = st.sampled_from([*COUNTRIES.values(), "de", "FR"])
    return (
        st.builds(lambda tag: {"tag": tag}, st.sampled_from(TAGS))
        | st.builds(language, st.sampled_from(["eq", "ne", "starts_with"]), languages)
        | st.builds(language, st.just("in"), st.lists(languages, min_size=1, max_size=3))
        | st.builds(field, st.just("timezone"), st.just("eq"), zones)
        | st.builds(field, st.just("timezone"), st.just("in"), st.lists(zones, min_size=1))
        | st.builds(field, st.sampled_from(EXISTING), st.just("exists"), st.booleans())
        | st.builds(field, st.just("country"), st.sampled_from(["eq", "ne"]), countries)
        | st.builds(field, st.just("country"), st.just("in"), st.lists(countries, min_size=1))
        | st.builds(
            field,
            st.just("app_version"),
            st.sampled_from(["eq", "ne"]) | _COMPARISONS,
            st.sampled_from(VERSIONS),
        )
    )


def _retargeting(notifications):
    if not notifications:
        return st.nothing()
    return st.builds(
        lambda id_, outcome: {"notification": id_, "outcome": outcome},
        st.sampled_from(notifications),
        st.sampled_from(OUTCOMES),
    )


def rows(now):
    """Fields for `factories.add_each`."""
    return st.lists(
        st.fixed_dictionaries(
            {
                "platform": st.sampled_from(PLATFORMS),
                "attributes": attributes(),
                "created_at": HALF_DAYS.map(lambda ago: now - ago),
                "registered_at": HALF_DAYS.map(lambda ago: now - ago),
                "language": st.sampled_from(["", *LANGUAGES]),
                "timezone": st.sampled_from(["", *ZONES]),
            }
        ),
        min_size=4,
        max_size=8,
    )


def plans_of(call):
    """The plans of the statements that read subscriptions, and do not only ask for a plan."""
    with CaptureQueriesContext(connection) as captured:
        call()
    table = Subscription._meta.db_table
    # An estimate is sent together with its time limit.
    made = [query["sql"].rpartition("; ")[2] for query in captured]
    statements = [each for each in made if table in each and not each.startswith("EXPLAIN")]
    return [
        "\n".join(line for (line,) in sql.rows("EXPLAIN " + statement.replace("%", "%%"), {}))
        for statement in statements
    ]

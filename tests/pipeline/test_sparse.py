"""Sends to a segment of a few in a large channel: their recipients are found by the index."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from notifications_app.models import Plan
from notifications_app.pipeline import planning, windows
from pushsvc.common.store import sql
from tests import factories, segments
from tests.pipeline import support

PRO = segments.attribute("plan", "eq", "pro")
NOT_BUS = {"not": segments.attribute("topic", "eq", "bus")}


@pytest.fixture(autouse=True)
def _small_windows(settings):
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3


@pytest.fixture
def members(channel, other_channel):
    """Five of 25 in the channel, and as many elsewhere."""
    fields = [{"attributes": {"plan": "free"}}] * 4 + [{"attributes": {"plan": "pro"}}]
    factories.add_each(other_channel, fields * 5)
    rows = factories.add_each(channel, fields * 5)
    factories.add_subscriptions(channel, 1, platform="android", attributes={"plan": "pro"})
    factories.add_subscriptions(channel, 1, attributes={"plan": "pro"}, expired_at=Now())
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    return sorted(row.id for row in rows if row.attributes["plan"] == "pro")


@pytest.mark.parametrize(
    "rule",
    [
        PRO,
        segments.attribute("plan", "in", ["pro", "team"]),
        {"all": [NOT_BUS, PRO]},
        {"any": [PRO, segments.attribute("plan", "eq", "team")]},
    ],
)
def test_one_window_finds_exactly_the_members(channel, members, rule):
    notification, lease = support.started(channel, rule)

    assert support.windows_until_the_end(lease) == 1

    assert support.planned_ids(notification) == members
    notification.refresh_from_db()
    assert notification.recipient_count == 5
    assert sorted(notification.batches.values_list("recipient_count", flat=True)) == [2, 3]
    assert notification.plans.get().status == "delivering"


def test_the_rest_of_the_rule_applies_to_the_candidates(channel, members):
    factories.add_subscriptions(channel, 2, attributes={"plan": "pro", "topic": "bus"})
    notification, lease = support.started(channel, {"all": [NOT_BUS, PRO]})
    assert support.windows_until_the_end(lease) == 1
    assert support.planned_ids(notification) == members


def test_a_window_of_the_index_does_not_read_the_channel(channel, members):
    many = factories.add_subscriptions(channel, 3000, attributes={"plan": "free"})
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    notification, lease = support.started(channel, PRO)

    assert support.most_rows_read(lambda: support.plan_window(lease)) < len(many) / 10
    assert support.planned_ids(notification) == members


def test_subscriptions_of_other_channels_are_not_read_if_many_candidates_are_expected(
    channel, other_channel, members
):
    """Each half of the rule is common, so PostgreSQL expects many to match both. It would read all
    channels for them, and there are none."""
    languages = [{"attributes": {"lang": language}} for language in ("en", "de")]
    many = factories.add_each(other_channel, languages * 1000)
    factories.add_each(channel, languages)
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    both = {"all": [segments.attribute("lang", "eq", language) for language in ("en", "de")]}
    notification, lease = support.started(channel, both)

    assert support.most_rows_read(lambda: support.plan_window(lease)) < len(many) / 10
    support.windows_until_the_end(lease)
    assert support.planned_ids(notification) == []


@pytest.mark.parametrize("most", [9, 10, 11, 12])
def test_the_channel_is_read_if_the_index_finds_too_many(channel, members, monkeypatch, most):
    """Eleven candidates: five members, five of another channel, and a phone."""
    monkeypatch.setattr(windows, "INDEX_ROWS", most)
    notification, lease = support.started(channel, PRO)

    assert support.windows_until_the_end(lease) == (1 if most >= 11 else 7)
    assert support.planned_ids(notification) == members


@pytest.mark.parametrize(
    "rule", [NOT_BUS, {"any": [PRO, segments.attribute("plan", "starts_with", "pr")]}]
)
def test_the_channel_is_read_if_the_index_cannot_answer(channel, members, rule):
    notification, lease = support.started(channel, rule)
    assert support.windows_until_the_end(lease) == 7
    assert set(members) <= set(support.planned_ids(notification))


def test_a_channel_of_one_window_is_read(channel, other_channel):
    factories.add_subscriptions(other_channel, 9, attributes={"plan": "pro"})
    (member, *_) = factories.add_each(
        channel, [{"attributes": {"plan": plan}} for plan in ("pro", "free", "free")]
    )
    notification, lease = support.started(channel, PRO)
    with support.statements() as made:
        assert support.windows_until_the_end(lease) == 1
    assert not [each for each in made if "candidates" in each]
    assert support.planned_ids(notification) == [member.id]


def test_a_planner_that_dies_in_the_window_leaves_all_of_it_to_the_next(
    channel, members, monkeypatch
):
    notification, lease = support.started(channel, PRO)
    with monkeypatch.context() as dying:
        dying.setattr(planning, "counters_add", die)
        with pytest.raises(RuntimeError):
            support.plan_window(lease)
    assert support.planned_ids(notification) == []

    Plan.objects.update(lease_until=Now() - timedelta(seconds=1))
    support.plan(notification)

    assert support.planned_ids(notification) == members
    support.assert_exact(channel)


def test_a_plan_that_began_to_read_the_channel_continues_at_its_cursor(channel, members):
    notification, lease = support.started(channel, PRO)
    Plan.objects.update(cursor=members[1])
    assert support.windows_until_the_end(lease) > 1
    assert support.planned_ids(notification) == members[2:]


def die(*_arguments, **_options):
    raise RuntimeError("the planner died")

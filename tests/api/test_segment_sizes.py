"""The size of a rule's audience and its examples, in channels too large to be read whole."""

import pytest

from channels_app.counters import counter_add
from pushsvc.common.store import sql
from subscriptions_app.audiences import sizes
from subscriptions_app.audiences.sizes import Size, attribute_names, audience_size, segment_sample
from subscriptions_app.categories.consent import choices_seen
from subscriptions_app.models import Subscription
from tests import factories, segments
from tests.segments import attribute, plans_of

PRO = attribute("plan", "eq", "pro")
OLD = attribute("age", "gte", 60)
PLANS = """
json_build_object('plan', CASE WHEN n %% {} = 0 THEN 'pro' ELSE 'free' END, 'age', n %% 80)
"""


@pytest.fixture
def channel(alice):
    return alice.channel


@pytest.fixture
def large(monkeypatch):
    """A channel of 50 subscriptions counts as large."""
    monkeypatch.setattr(sizes, "SAMPLE_ROWS", 50)
    monkeypatch.setattr(sizes, "INDEX_ROWS", 40)
    monkeypatch.setattr(sizes, "EXACT_UP_TO", 30)


def web(channel, rule):
    return audience_size(channel.id, rule, ["web"])["web"]


def test_the_size_of_a_whole_channel_is_exact(channel, large):
    factories.add_crowd(channel, 200)
    factories.add_subscription(channel, platform="ios")
    assert audience_size(channel.id, None, ["web", "ios"]) == {
        "web": Size(200, estimated=False),
        "ios": Size(1, estimated=False),
    }


def test_up_to_ten_thousand_is_exact_and_more_is_an_estimate(channel):
    factories.add_crowd(channel, 10_001, PLANS.format(1))
    assert web(channel, PRO) == Size(10_001, estimated=True)
    assert web(channel, {"not": attribute("age", "eq", 7)}) == Size(9_876, estimated=False)
    Subscription.objects.filter(pk=Subscription.objects.first().pk).update(attributes={})
    assert web(channel, PRO) == Size(10_000, estimated=False)


def test_a_small_channel_is_read_whole(channel, large):
    factories.add_crowd(channel, 49, PLANS.format(2))
    assert web(channel, OLD) == Size(0, estimated=False)
    assert web(channel, PRO) == Size(24, estimated=False)


def test_an_index_counts_a_small_audience_of_a_large_channel_exactly(channel, bob, large):
    factories.add_crowd(channel, 2_000, PLANS.format(100))
    factories.add_subscription(bob.channel, {"plan": "pro", "age": 5})
    factories.add_subscription(channel, {"plan": "pro"}, platform="ios")
    both = {"all": [PRO, attribute("age", "lt", 40)]}
    sql.execute("ANALYZE subscriptions_app_subscription", {})

    assert web(channel, PRO) == Size(20, estimated=False)
    assert web(channel, both) == Size(10, estimated=False)
    assert web(channel, attribute("plan", "in", ["pro", "gold"])) == Size(20, estimated=False)
    assert web(channel, {"any": [PRO, attribute("age", "eq", -1)]}) == Size(20, estimated=False)
    everywhere = audience_size(channel.id, PRO, ["web", "ios", "android"])
    assert [size.size for size in everywhere.values()] == [20, 1, 0]


def test_a_tag_counts_a_small_audience_of_a_large_channel_exactly(channel, bob, large):
    factories.add_crowd(channel, 2_000, PLANS.format(100))
    rows = list(Subscription.objects.filter(channel=channel).order_by("-id")[100:120])
    factories.add_tags(rows, "team-7")
    factories.add_tags(rows[:5], "silent")
    factories.add_tags([factories.add_subscription(channel, platform="ios")], "team-7")
    factories.add_tags([factories.add_subscription(bob.channel)], "team-7")
    team = {"tag": "team-7"}
    quiet = {"all": [team, {"not": {"tag": "silent"}}]}

    assert web(channel, team) == Size(20, estimated=False)
    assert web(channel, quiet) == Size(15, estimated=False)
    assert web(channel, {"all": [{"tag": "silent"}, team]}) == Size(5, estimated=False)
    assert audience_size(channel.id, team, ["ios"]) == {"ios": Size(1, estimated=False)}
    assert {row.id for row in segment_sample(channel.id, quiet, limit=50)} >= {
        row.id for row in rows[5:]
    }


def test_a_tag_with_many_devices_is_estimated_also_if_most_of_them_have_expired(channel, large):
    factories.add_crowd(channel, 2_000)
    rows = list(Subscription.objects.filter(channel=channel))
    factories.add_tags(rows, "all")
    gone = [row.id for row in rows[:1_990]]
    Subscription.objects.filter(id__in=gone).update(expired_at="2026-01-01T00:00:00Z")
    counter_add(channel.id, web_subscribers=-1_990)
    assert web(channel, {"tag": "all"}).estimated


@pytest.mark.parametrize(
    "rule",
    [
        OLD,  # not an equality
        {"not": PRO},
        {"any": [PRO, OLD]},  # only one of the two has an index
        attribute("plan", "eq", "free"),  # too many
    ],
)
def test_a_large_audience_is_estimated_from_a_fair_sample(channel, large, rule):
    factories.add_crowd(channel, 2_000, PLANS.format(100))
    rows = Subscription.objects.filter(channel=channel)
    looked_at = rows.order_by("address_sha256")[:50]
    share = sum(segments.matches(rule, row, None) for row in looked_at)

    assert web(channel, rule) == Size(2_000 * share // 50, estimated=True)


def test_an_estimate_is_close_to_the_true_size(channel, monkeypatch):
    monkeypatch.setattr(sizes, "SAMPLE_ROWS", 2_000)
    factories.add_crowd(channel, 20_000, PLANS.format(2))
    estimate = web(channel, {"not": PRO})
    assert estimate.estimated
    # Half of 2,000 rows, chosen by chance, count for ten each: one run in a billion is further off.
    assert abs(estimate.size - 10_000) < 6 * 10 * (2_000 / 4) ** 0.5


def test_expired_subscriptions_are_not_counted(channel, large):
    factories.add_crowd(channel, 100, PLANS.format(1))
    gone = Subscription.objects.filter(pk__in=Subscription.objects.values("pk")[:90])
    assert gone.update(expired_at="2026-01-01T00:00:00Z") == 90
    counter_add(channel.id, web_subscribers=-90)
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    assert web(channel, PRO) == Size(10, estimated=False)
    assert web(channel, {"not": attribute("plan", "eq", "free")}) == Size(10, estimated=True)
    assert len(segment_sample(channel.id, PRO, limit=50)) == 10


def test_examples_are_the_newest_members(channel, bob):
    members = [factories.add_each(channel, [{"attributes": {"plan": "pro"}}])[0] for _ in range(12)]
    factories.add_subscription(channel, {"plan": "free"})
    factories.add_subscription(bob.channel, {"plan": "pro"})
    newest = sorted((row.id for row in members), reverse=True)[:10]
    assert [row.id for row in segment_sample(channel.id, PRO)] == newest
    assert len(segment_sample(channel.id, PRO, limit=3)) == 3


def test_the_index_finds_old_examples(channel, monkeypatch):
    monkeypatch.setattr(sizes, "_RECENT_ROWS", 5)
    old = factories.add_subscription(channel, {"plan": "pro", "age": 70})
    factories.add_each(channel, [{"attributes": {"plan": "free"}}] * 6)
    assert [row.id for row in segment_sample(channel.id, PRO)] == [old.id]
    assert [row.id for row in segment_sample(channel.id, {"all": [OLD, PRO]})] == [old.id]
    assert segment_sample(channel.id, OLD) == []


def test_attribute_names_are_listed_with_their_types_by_frequency(channel, bob):
    factories.add_subscription(channel, {"plan": "pro", "age": 5})
    factories.add_subscription(channel, {"plan": "pro"}, platform="ios")
    factories.add_subscription(channel, {"plan": 7})
    factories.add_subscription(channel, {})
    factories.add_subscription(bob.channel, {"secret": "x"})
    seen = [(each.name, each.kinds) for each in attribute_names(channel.id)]
    assert seen == [("plan", ("number", "string")), ("age", ("number",))]


def test_no_query_reads_a_large_table_whole_and_equality_uses_its_index(channel, bob):
    factories.add_crowd(channel, 60_000, PLANS.format(1_000))
    # as autovacuum does
    sql.rows("SELECT gin_clean_pending_list('subscription_attributes')", {})
    sql.execute("ANALYZE subscriptions_app_subscription", {})

    (by_index,) = plans_of(lambda: web(channel, PRO))
    (by_sample,) = plans_of(lambda: web(channel, OLD))
    assert "subscription_place_once" in by_sample
    assert "subscription_attributes" in by_index
    for rule in (PRO, OLD, {"any": [PRO, attribute("plan", "eq", "gold")]}):
        recent = plans_of(lambda rule=rule: segment_sample(channel.id, rule))
        seen = plans_of(lambda rule=rule: web(channel, rule))
        assert "Seq Scan on subscriptions_app_subscription" not in "\n".join([*recent, *seen])
    names = plans_of(lambda: attribute_names(channel.id))
    assert "subscription_active" in names[0]


def test_one_of_many_tags_is_one_look_for_each_device(channel):
    factories.add_crowd(channel, 3_000)
    rows = Subscription.objects.filter(channel=channel)
    factories.add_tags(rows[:1_000], "t0")
    factories.add_tags(rows[500:2_000], "t49", "other")
    for table in ("subscription", "tag"):
        sql.execute(f"ANALYZE subscriptions_app_{table}", {})
    one_of = {"any": [{"tag": f"t{number}"} for number in range(50)]}
    neither = {"not": {"any": [attribute("nobody", "exists", True), *one_of["any"]]}}

    for rule, size in ((one_of, 2_000), (neither, 1_000)):
        (plan,) = plans_of(lambda rule=rule: web(channel, rule))
        assert plan.count(" on subscriptions_app_tag") == 1
        assert "tag_subscription" in plan
        assert web(channel, rule) == Size(size, estimated=False)


def test_the_newest_are_found_by_their_index_also_where_a_platform_has_none(channel):
    """Devices lie in the table in the order of their ids, as they came. So PostgreSQL expects a
    thousand of any platform at its end."""
    factories.add_crowd(channel, 30_000)
    sql.execute("SET CONSTRAINTS ALL IMMEDIATE", {})  # CLUSTER refuses a table with pending checks
    table = "subscriptions_app_subscription"
    sql.execute(f"CLUSTER {table} USING {table}_pkey", {})
    sql.execute(f"ANALYZE {table}", {})
    for read in (attribute_names, choices_seen, lambda id_: segment_sample(id_, PRO)):
        plan = plans_of(lambda read=read: read(channel.pk))[0]
        assert "using subscription_active on" in plan
        assert f"{table}_pkey" not in plan


def test_no_query_reads_all_channels_for_what_is_expected_to_be_frequent(
    channel, bob, large, monkeypatch
):
    """Each half of the rule is common, so PostgreSQL expects many to match both."""
    monkeypatch.setattr(sizes, "_RECENT_ROWS", 5)
    for each in (channel, bob.channel):
        factories.add_crowd(each, 3_000, PLANS.format(2))
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    both = {"all": [PRO, attribute("plan", "eq", "free")]}

    seen = plans_of(lambda: web(channel, both)) + plans_of(lambda: segment_sample(channel.id, both))

    assert "Seq Scan on subscriptions_app_subscription" not in "\n".join(seen)
    assert web(channel, both) == Size(0, estimated=True)

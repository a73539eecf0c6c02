"""Sends to those who have a tag: their windows read the tag's devices, and not the channel."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from notifications_app.pipeline import plan_queue
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.audiences import narrowing
from subscriptions_app.devices.services import subscription_forget, subscription_unsubscribe
from subscriptions_app.models import Subscription, Tag
from subscriptions_app.tags.services import TagChange, device_tags_change
from tests import factories, segments
from tests.pipeline import support

TEAM = {"tag": "team-7"}
PRO = segments.attribute("plan", "eq", "pro")


@pytest.fixture(autouse=True)
def _small_windows(settings):
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3


@pytest.fixture
def crowd(channel, other_channel):
    """Thirty of the channel, in the order of their ids."""
    factories.add_tags(factories.add_subscriptions(other_channel, 5), "team-7")
    factories.add_tags(factories.add_subscriptions(channel, 2, platform="android"), "team-7")
    return factories.add_subscriptions(channel, 30)


def leave(channel, rows):
    for row in rows:
        subscription_unsubscribe(channel=channel, address=Address.of(row.platform, row.address))


def ids(rows):
    return sorted(row.id for row in rows)


@pytest.mark.parametrize(
    "rule", [TEAM, {"all": [TEAM, {"not": {"tag": "silent"}}]}, {"all": [{"any": [TEAM]}, TEAM]}]
)
def test_a_tag_is_planned_in_windows_of_its_own_devices(channel, crowd, rule):
    members = crowd[::3]
    factories.add_tags(members, "team-7")
    notification, lease = support.started(channel, rule)

    assert support.windows_until_the_end(lease) == 3  # of 4, 4 and 2

    assert support.planned_ids(notification) == ids(members)
    notification.refresh_from_db()
    assert notification.recipient_count == 10
    support.assert_exact(channel)


def test_the_rest_of_the_rule_applies_to_each_device_of_the_tag(channel, crowd):
    factories.add_tags(crowd[:6], "team-7")
    Subscription.objects.filter(id__in=[row.id for row in crowd[::2]]).update(
        attributes={"plan": "pro"}
    )
    factories.add_tags([crowd[0]], "silent")
    rule = {"all": [{"not": {"tag": "silent"}}, PRO, TEAM]}
    notification, lease = support.started(channel, rule)
    assert support.windows_until_the_end(lease) == 2
    assert support.planned_ids(notification) == ids([crowd[2], crowd[4]])


def test_expired_devices_of_a_tag_are_read_in_windows_too_and_get_nothing(channel, crowd):
    factories.add_tags(crowd, "team-7")
    leave(channel, crowd[1:])
    notification, lease = support.started(channel, TEAM)
    assert support.windows_until_the_end(lease) == 8  # seven of 4, and one of 2
    assert support.planned_ids(notification) == [crowd[0].id]


def test_of_several_tags_the_one_with_fewer_devices_is_read(channel, crowd):
    factories.add_tags(crowd, "all")
    factories.add_tags(crowd[10:13], "few")
    notification, lease = support.started(channel, {"all": [{"tag": "all"}, {"tag": "few"}]})
    assert support.windows_until_the_end(lease) == 1
    assert support.planned_ids(notification) == ids(crowd[10:13])


def test_many_devices_of_several_tags_are_not_all_counted(channel, crowd, monkeypatch):
    """Two tags that both have more than are compared: either may be read."""
    monkeypatch.setattr(narrowing, "_COMPARED", 3)
    factories.add_tags(crowd, "all", "most")
    notification, lease = support.started(channel, {"all": [{"tag": "most"}, {"tag": "all"}]})
    support.windows_until_the_end(lease)
    assert support.planned_ids(notification) == ids(crowd)


@pytest.mark.parametrize("rule", [{"not": TEAM}, {"any": [TEAM, PRO]}])
def test_a_rule_that_requires_no_tag_reads_the_channel(channel, crowd, rule):
    factories.add_tags(crowd[:6], "team-7")
    notification, lease = support.started(channel, rule)
    assert support.windows_until_the_end(lease) == 8
    expected = crowd[:6] if "any" in rule else crowd[6:]
    assert support.planned_ids(notification) == ids(expected)


def test_a_window_of_a_tag_does_not_read_the_channel(channel, crowd):
    factories.add_tags(crowd[:3], "team-7")
    many = factories.add_subscriptions(channel, 3000)
    factories.add_tags(many, "other")
    sql.execute("ANALYZE subscriptions_app_subscription, subscriptions_app_tag", {})
    notification, lease = support.started(channel, TEAM)

    assert support.most_rows_read(lambda: support.plan_window(lease)) < len(many) / 10
    assert support.planned_ids(notification) == ids(crowd[:3])


_TAGS = ("a", "b")
_EVENTS = st.lists(
    st.sampled_from(["window", "add", "remove", "replace", "expire", "come"]), max_size=14
)


@examples(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    tags=st.lists(st.sets(st.sampled_from(_TAGS)), min_size=6, max_size=14),
    events=_EVENTS,
    rule=st.sampled_from([{"tag": "a"}, {"all": [{"tag": "a"}, {"tag": "b"}]}]),
    data=st.data(),
)
def test_who_has_the_tags_throughout_is_planned_exactly_once(channel, tags, events, rule, data):
    """Others may be planned or not, if they had them at some time."""
    leave(channel, Subscription.objects.filter(channel=channel, expired_at=None))
    Tag.objects.all().delete()
    crowd = factories.add_subscriptions(channel, len(tags))
    for row, own in zip(crowd, tags, strict=True):
        factories.add_tags([row], *own)
    wanted = set("ab" if "all" in rule else "a")
    name = f"{sorted(wanted)} {len(channel.segments.all())}"
    segment = factories.make_segment(channel, rule, name)
    notification = factories.make_notification(channel, segment_id=segment.id)
    plan_queue.start_due()
    lease = support.claim_plan()
    always = ever = _members(channel, wanted)
    for event in events:
        if event == "window":
            support.plan_window(lease)
        else:
            _change(channel, crowd, event, data)
        always, ever = always & _members(channel, wanted), ever | _members(channel, wanted)
    support.windows_until_the_end(lease)

    got = support.planned_ids(notification)
    assert len(got) == len(set(got))
    assert always <= set(got) <= ever
    notification.refresh_from_db()
    assert notification.recipient_count == len(got)


def _members(channel, wanted):
    active = Subscription.objects.filter(channel=channel, expired_at=None)
    return {
        row.id
        for row in active.prefetch_related("tags")
        if wanted <= {tag.tag for tag in row.tags.all()}
    }


def _change(channel, crowd, event, data):
    row, tag = data.draw(st.sampled_from(crowd)), data.draw(st.sampled_from(_TAGS))
    if event == "come":
        factories.add_tags(factories.add_subscriptions(channel, 1), *_TAGS)
    elif event == "expire":
        leave(channel, [row])
    else:
        changes = {
            "add": TagChange(added=[tag]),
            "remove": TagChange(removed=[tag]),
            "replace": TagChange(added=[tag], replaces=True),
        }
        device_tags_change(row.id, changes[event])


def test_a_subscription_that_goes_takes_its_tags_along(channel, crowd):
    factories.add_tags(crowd, "team-7")
    subscription_forget(subscription=crowd[0])
    assert not Tag.objects.filter(subscription=crowd[0].id).exists()

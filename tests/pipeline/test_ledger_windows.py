"""Sends by the outcome of an earlier notification: their windows read its recipients, and not the
channel."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from notifications_app.models import Delivery
from notifications_app.pipeline import plan_queue
from notifications_app.states import DeliveryStatus
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.models import Subscription
from tests import factories, segments
from tests.pipeline import support

PRO = segments.attribute("plan", "eq", "pro")
_NO_BATCH = 0
DELIVERED, BOUNCED = DeliveryStatus.DELIVERED, DeliveryStatus.BOUNCED


@pytest.fixture(autouse=True)
def _small_windows(settings):
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3


@pytest.fixture(autouse=True)
def _no_rows_without_batches(channel):
    yield
    Delivery.objects.filter(batch_id=_NO_BATCH).delete()


@pytest.fixture
def crowd(channel):
    """Thirty of the channel, in the order of their ids."""
    return factories.add_subscriptions(channel, 30)


def ended(channel, rows, status=DELIVERED):
    """A notification of the channel that has ended so for these."""
    notification = factories.make_notification(channel, status="cancelled")
    _write(notification, {row.id: status for row in rows})
    return notification


def _write(notification, statuses):
    rows = [
        Delivery(
            notification_id=notification.id, subscription_id=id_, batch_id=_NO_BATCH, status=status
        )
        for id_, status in statuses.items()
    ]
    Delivery.objects.bulk_create(rows)


def to(notification, outcome="delivered"):
    return {"notification": str(notification.id), "outcome": outcome}


def leave(channel, rows):
    for row in rows:
        subscription_unsubscribe(channel=channel, address=Address.of(row.platform, row.address))


@pytest.mark.parametrize("wrap", [lambda rule: rule, lambda rule: {"all": [{"any": [rule]}, rule]}])
def test_it_is_planned_in_windows_of_the_recipients(channel, crowd, wrap):
    earlier = ended(channel, crowd[::3])
    notification, lease = support.started(channel, wrap(to(earlier)))

    assert support.windows_until_the_end(lease) == 3  # of 4, 4 and 2

    assert support.planned_ids(notification) == support.ids(crowd[::3])
    notification.refresh_from_db()
    assert notification.recipient_count == 10


def test_recipients_without_the_outcome_and_expired_ones_are_read_too_and_get_nothing(
    channel, crowd
):
    earlier = ended(channel, crowd[:10])
    _write(earlier, {row.id: BOUNCED for row in crowd[10:20]})
    leave(channel, crowd[:9])
    notification, lease = support.started(channel, to(earlier))
    assert support.windows_until_the_end(lease) == 6  # the last one is empty
    assert support.planned_ids(notification) == [crowd[9].id]


def test_recipients_on_other_platforms_get_nothing(channel, crowd):
    phones = factories.add_subscriptions(channel, 3, platform="android")
    notification, lease = support.started(channel, to(ended(channel, crowd[:3] + phones)))
    support.windows_until_the_end(lease)
    assert support.planned_ids(notification) == support.ids(crowd[:3])


def test_the_rest_of_the_rule_applies_to_each_recipient(channel, crowd):
    Subscription.objects.filter(id__in=support.ids(crowd[::2])).update(attributes={"plan": "pro"})
    rule = {"all": [{"not": {"tag": "silent"}}, PRO, to(ended(channel, crowd[:6]))]}
    factories.add_tags([crowd[0]], "silent")
    notification, lease = support.started(channel, rule)
    support.windows_until_the_end(lease)
    assert support.planned_ids(notification) == support.ids([crowd[2], crowd[4]])


@pytest.mark.parametrize("few", ["tag", "notification"])
def test_what_fewer_devices_have_is_read(channel, crowd, few):
    tagged, named = (crowd[10:13], crowd) if few == "tag" else (crowd, crowd[10:13])
    factories.add_tags(tagged, "team-7")
    notification, lease = support.started(
        channel, {"all": [{"tag": "team-7"}, to(ended(channel, named))]}
    )
    assert support.windows_until_the_end(lease) == 1
    assert support.planned_ids(notification) == support.ids(crowd[10:13])


@pytest.mark.parametrize("outcome", [{"not": "delivered"}, {"any": "delivered"}])
def test_a_rule_that_requires_no_outcome_reads_the_channel(channel, crowd, outcome):
    (group,) = outcome
    inner = to(ended(channel, crowd[:6]))
    rule = {"not": inner} if group == "not" else {"any": [inner, PRO]}
    notification, lease = support.started(channel, rule)
    assert support.windows_until_the_end(lease) == 8
    expected = crowd[6:] if group == "not" else crowd[:6]
    assert support.planned_ids(notification) == support.ids(expected)


def test_a_window_does_not_read_the_channel(channel, crowd):
    earlier = ended(channel, crowd[:3])
    many = factories.add_subscriptions(channel, 3000)
    ended(channel, many)
    sql.execute("ANALYZE notifications_app_delivery, subscriptions_app_subscription", {})
    notification, lease = support.started(channel, to(earlier))

    assert support.most_rows_read(lambda: support.plan_window(lease)) < len(many) / 10
    assert support.planned_ids(notification) == support.ids(crowd[:3])


@examples(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    statuses=st.lists(st.sampled_from([DELIVERED, BOUNCED, None]), min_size=1, max_size=14),
    window=st.integers(1, 16),
    events=st.lists(st.sampled_from(["window", "expire", "click", "come"]), max_size=14),
    outcome=st.sampled_from(["delivered", "not_clicked"]),
    data=st.data(),
)
def test_who_has_the_outcome_throughout_is_planned_exactly_once(
    channel, settings, statuses, window, events, outcome, data
):
    """Across windows of any size. Others may be planned or not, if they had it at some time."""
    settings.PLAN_WINDOW = window
    leave(channel, Subscription.objects.filter(channel=channel, expired_at=None))
    crowd = factories.add_subscriptions(channel, len(statuses))
    earlier = factories.make_notification(channel, status="cancelled")
    pairs = zip(support.ids(crowd), statuses, strict=True)
    _write(earlier, {id_: status for id_, status in pairs if status is not None})
    segment = factories.make_segment(channel, to(earlier, outcome), str(uuid7()))
    notification = factories.make_notification(channel, segment_id=segment.id)
    plan_queue.start_due()
    lease = support.claim_plan()
    always = ever = _members(earlier, outcome)
    for event in events:
        if event == "window":
            support.plan_window(lease)
        elif event == "come":
            factories.add_subscriptions(channel, 1)
        elif event == "expire":
            leave(channel, [data.draw(st.sampled_from(crowd))])
        else:
            own = Delivery.objects.filter(
                notification_id=earlier.id, subscription_id=data.draw(st.sampled_from(crowd)).id
            )
            own.update(clicked_at=earlier.created_at)
        now = _members(earlier, outcome)
        always, ever = always & now, ever | now
    support.windows_until_the_end(lease)

    got = support.planned_ids(notification)
    assert len(got) == len(set(got))
    assert always <= set(got) <= ever
    notification.refresh_from_db()
    assert notification.recipient_count == len(got)


def _members(earlier, outcome):
    named = Delivery.objects.filter(notification_id=earlier.id, status=DELIVERED)
    if outcome == "not_clicked":
        named = named.filter(clicked_at=None)
    own = named.values("subscription_id")
    active = Subscription.objects.filter(id__in=own, expired_at=None)
    return set(active.values_list("id", flat=True))

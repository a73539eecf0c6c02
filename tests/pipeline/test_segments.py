"""The recipients of a send to a segment, and when they are determined."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from notifications_app.errors import SegmentInUse
from notifications_app.models import Notification, Plan
from notifications_app.pipeline import plan_queue
from notifications_app.sends.services import notification_cancel, segment_delete
from pushsvc.common.errors import NotFound
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.models import Segment, Subscription
from subscriptions_app.segments.selectors import segment_hold
from subscriptions_app.segments.services import segment_update
from tests import factories, segments
from tests.pipeline import support
from tests.segments import attribute, field

PRO = attribute("plan", "eq", "pro")
FREE = attribute("plan", "eq", "free")
READ = attribute("plan", "starts_with", "pro")  # the same, without an index, so in windows


@pytest.fixture(autouse=True)
def _small_windows(settings):
    settings.PLAN_WINDOW = 4
    settings.BATCH_SIZE = 3


def planned(notification):
    return set(support.deliveries(notification).values_list("subscription_id", flat=True))


def ids(rows):
    return {row.id for row in rows}


def add(channel, plans, platform="web"):
    """One subscription for each word, by word."""
    rows = factories.add_each(
        channel, [{"attributes": {"plan": plan}, "platform": platform} for plan in plans]
    )
    return {plan: [row for row in rows if row.attributes["plan"] == plan] for plan in plans}


def edit(segment, rule):
    segment_update(
        channel_id=segment.channel_id, segment_id=segment.id, name=segment.name, rule=rule
    )


def end_plan_leases():
    """The planner died a minute ago."""
    Plan.objects.update(lease_until=Now() - timedelta(seconds=1))


def test_a_send_to_a_segment_reaches_exactly_its_members_on_each_platform(channel, other_channel):
    members = [add(channel, ["pro", "free"] * 5, each)["pro"] for each in segments.PLATFORMS]
    add(other_channel, ["pro"])
    segment = factories.make_segment(channel, PRO)

    everywhere = factories.make_notification(
        channel, segment_id=segment.id, target_platforms=list(segments.PLATFORMS)
    )
    on_the_web = factories.make_notification(channel, segment_id=segment.id)
    support.plan(everywhere)

    assert planned(everywhere) == ids([row for rows in members for row in rows])
    assert everywhere.recipient_count == 15
    assert planned(on_the_web) == ids(members[0])


def test_only_devices_of_members_get_the_message(sandbox, channel):
    pairs = factories.subscribe_browsers(sandbox, channel, 6)
    wanted = [row.id for _, row in pairs[:2]]
    Subscription.objects.filter(id__in=wanted).update(attributes={"plan": "pro"})
    segment = factories.make_segment(channel, PRO)

    notification = support.send(channel, segment_id=segment.id)

    assert support.counts(notification) == ("sent", 2, 2, 0)
    assert [len(device.receipts) for device, _ in pairs] == [1, 1, 0, 0, 0, 0]


def test_only_an_edit_before_the_start_changes_the_recipients(channel):
    by_plan = add(channel, ["pro", "free"] * 5)
    segment = factories.make_segment(channel, PRO)
    notification = factories.make_notification(channel, segment_id=segment.id)

    edit(segment, FREE)
    plan_queue.start_due()
    edit(segment, PRO)
    support.plan(notification)

    assert planned(notification) == ids(by_plan["free"])


def test_a_planner_that_takes_over_uses_the_rule_of_the_start(channel):
    by_plan = add(channel, ["pro", "free"] * 6)
    segment = factories.make_segment(channel, READ)
    notification = factories.make_notification(channel, segment_id=segment.id)
    plan_queue.start_due()
    assert support.plan_window(support.claim_plan())
    edit(segment, FREE)

    end_plan_leases()
    support.plan(notification)

    assert planned(notification) == ids(by_plan["pro"])


def test_days_are_counted_from_the_start_in_every_window(channel):
    segment = factories.make_segment(channel, field("last_seen_at", "lt", {"days_ago": 10}))
    notification = factories.make_notification(channel, segment_id=segment.id)
    plan_queue.start_due()
    Notification.objects.update(started_at=Now() - timedelta(days=5))
    notification.refresh_from_db()
    start = notification.started_at
    seen = [{"registered_at": start - timedelta(days=days)} for days in (9, 11, 4, 12, 9, 11)]
    rows = factories.add_each(channel, seen)

    support.plan(notification)

    assert planned(notification) == {rows[1].id, rows[3].id, rows[5].id}


def test_a_missing_segment_has_no_members(channel):
    add(channel, ["pro"] * 6)

    notification = support.send(channel, segment_id=uuid7())

    assert support.counts(notification) == ("sent", 0, 0, 0)


def test_a_segment_of_another_channel_has_no_members(channel, other_channel):
    add(channel, ["pro"] * 6)
    segment = factories.make_segment(other_channel, PRO)

    notification = support.send(channel, segment_id=segment.id)

    assert support.counts(notification) == ("sent", 0, 0, 0)


def test_a_window_without_many_members_moves_the_cursor_and_writes_only_members(channel):
    plans = ["free"] * 9 + ["pro"] + ["free"] * 3
    rows = factories.add_each(channel, [{"attributes": {"plan": plan}} for plan in plans])
    segment = factories.make_segment(channel, READ)
    notification = factories.make_notification(channel, segment_id=segment.id)
    plan_queue.start_due()
    lease = support.claim_plan()

    cursors, counts = [], []
    for more in (True, True, True, False):
        assert support.plan_window(lease) is more
        plan = Plan.objects.get()
        cursors.append(plan.cursor)
        counts.append(plan.recipient_count)

    assert cursors == [rows[place].id for place in (3, 7, 11, 12)]
    assert counts == [0, 0, 1, 1]
    assert planned(notification) == {rows[9].id}


def test_a_send_to_a_segment_without_members_ends_after_the_last_window(channel):
    add(channel, ["free"] * 8)
    segment = factories.make_segment(channel, PRO)

    notification = support.send(channel, segment_id=segment.id)

    assert support.counts(notification) == ("sent", 0, 0, 0)
    assert Plan.objects.get().status != "planning"


_EVENTS = st.lists(
    st.sampled_from(["window", "come", "leave", "return", "turn pro", "turn free", "planner dies"]),
    max_size=12,
)


@examples(
    max_examples=30,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    plans=st.lists(st.sampled_from(["pro", "free"]), min_size=1, max_size=12),
    events=_EVENTS,
    rule=st.sampled_from([PRO, READ]),
    data=st.data(),
)
def test_a_member_throughout_planning_is_planned_once(channel, plans, events, rule, data):
    """Others may be planned or not, if they were a member at some time."""
    _leave_all(channel)
    name = rule["operator"]
    segment, _ = Segment.objects.get_or_create(channel=channel, name=name, rule=rule)
    crowd = factories.add_each(channel, [{"attributes": {"plan": plan}} for plan in plans])
    always = ever = _members(channel)
    notification = factories.make_notification(channel, segment_id=segment.id)
    plan_queue.start_due()
    lease = support.claim_plan()
    for event in events:
        if event == "window":
            support.plan_window(lease)
        elif event == "planner dies":
            end_plan_leases()
            lease = support.claim_plan() or lease
        else:
            _change(channel, data.draw(st.sampled_from(crowd)), event)
        always, ever = always & _members(channel), ever | _members(channel)
    end_plan_leases()
    support.plan(notification)

    got = support.deliveries(notification).values_list("subscription_id", flat=True)
    assert always <= set(got) <= ever
    assert notification.recipient_count == len(got)
    assert not Plan.objects.filter(notification=notification, status="planning").exists()


def _members(channel):
    found = Subscription.objects.filter(channel=channel, expired_at=None, attributes__plan="pro")
    return set(found.values_list("id", flat=True))


def _change(channel, row, event):
    if event == "come":
        factories.add_subscription(channel, {"plan": "pro"})
    elif event == "leave":
        subscription_unsubscribe(channel=channel, address=Address.of("web", row.address))
    elif event == "return":
        Subscription.objects.filter(id=row.id, expired_at=None).update(registered_at=Now())
    else:
        plan = event.removeprefix("turn ")
        Subscription.objects.filter(id=row.id).update(attributes={"plan": plan})


def _leave_all(channel):
    for row in Subscription.objects.filter(channel=channel, expired_at=None):
        subscription_unsubscribe(channel=channel, address=Address.of("web", row.address))


# --- deletion -------------------------------------------------------------------------------------


@pytest.fixture
def segment(channel):
    return factories.make_segment(channel, PRO)


def delete(segment):
    segment_delete(channel_id=segment.channel_id, segment_id=segment.id)


def test_a_segment_cannot_be_deleted_while_a_notification_needs_it(channel, segment):
    notification = factories.make_notification(channel, segment_id=segment.id)
    with pytest.raises(SegmentInUse, match=f"{notification.id} is pending"):
        delete(segment)
    add(channel, ["pro"])
    support.plan(notification)
    with pytest.raises(SegmentInUse, match=f"{notification.id} is processing"):
        delete(segment)
    assert Segment.objects.filter(id=segment.id).exists()


def test_a_segment_can_be_deleted_after_its_notifications_ended(channel, segment):
    sent = support.send(channel, segment_id=segment.id)
    cancelled = factories.make_notification(channel, segment_id=segment.id)
    notification_cancel(channel_id=channel.id, notification_id=cancelled.id)

    delete(segment)

    sent.refresh_from_db()
    assert (sent.status, sent.segment_id) == ("sent", segment.id)
    with pytest.raises(NotFound):
        delete(segment)


def test_a_deletion_waits_for_a_send_that_is_being_accepted_and_then_sees_it(channel, segment):
    def attempt():
        with pytest.raises(SegmentInUse):
            delete(segment)

    def accept():
        with transaction.atomic():
            assert segment_hold(channel_id=channel.id, segment_id=segment.id)
            held.append(True)
            support.until(support.waiting_sessions)
            factories.make_notification(channel, segment_id=segment.id)

    held = []
    support.in_threads(accept, lambda: (support.until(lambda: held), attempt()))
    assert Segment.objects.filter(id=segment.id).exists()


def test_a_send_that_waits_for_a_deletion_finds_the_segment_gone(channel, segment):
    def remove():
        with transaction.atomic():
            delete(segment)
            deleted.append(True)
            support.until(support.waiting_sessions)

    def accept():
        support.until(lambda: deleted)
        with transaction.atomic():
            return segment_hold(channel_id=channel.id, segment_id=segment.id)

    deleted = []
    assert support.in_threads(remove, accept)[1] is False


def test_edits_and_sends_do_not_wait_for_each_other(channel, segment):
    with transaction.atomic():
        assert segment_hold(channel_id=channel.id, segment_id=segment.id)
        support.in_threads(lambda: (_wait_briefly(), edit(segment, FREE)))
    with transaction.atomic():
        edit(segment, PRO)
        hold = {"channel_id": channel.id, "segment_id": segment.id}
        held = support.in_threads(lambda: (_wait_briefly(), segment_hold(**hold)))
    assert held == [(None, True)]


def _wait_briefly():
    """A lock that is not free raises an error."""
    sql.rows("SELECT set_config('lock_timeout', '5s', false)", {})

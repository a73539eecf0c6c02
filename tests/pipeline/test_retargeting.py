"""Sends to devices by how an earlier notification ended for them."""

import pytest

from notifications_app.events import Event, events_record
from notifications_app.models import Delivery
from notifications_app.pipeline import outcomes, plan_queue
from notifications_app.pipeline.transitions import Transition
from notifications_app.states import DeliveryStatus
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from tests import factories
from tests.pipeline import support

DELIVERED, BOUNCED = DeliveryStatus.DELIVERED, DeliveryStatus.BOUNCED


@pytest.fixture
def earlier(channel):
    """A notification and its six recipients: two clicked, one received, one only delivered, one
    bounced, and one waits. A seventh subscriber came later."""
    recipients = support.ids(factories.add_subscriptions(channel, 6))
    notification = factories.make_notification(channel)
    support.plan(notification)
    lease = support.claim()
    due = {each.subscription_id: each for each in support.due_rows(lease)}
    ended = zip(recipients, [DELIVERED] * 4 + [BOUNCED], strict=False)
    outcomes.record([lease], [_transition(due[id_], status) for id_, status in ended])
    kinds = ["clicked", "clicked", "received"]
    reports = zip(recipients, kinds, strict=False)
    events_record([Event(notification.id, id_, kind) for id_, kind in reports])
    factories.add_subscriptions(channel, 1)
    return notification, recipients


def _transition(due, status):
    code = "refused" if status == BOUNCED else ""
    return Transition(due, status, attempts=1, code=code)


def corrected(channel, notification):
    """A correction that was delivered."""
    rule = {"notification": str(notification.id), "outcome": "delivered"}
    root_id = notification.root_id or notification.id
    correction = factories.make_notification(channel, root_id=root_id, rule=rule)
    support.plan(correction)
    lease = support.claim()
    ended = [_transition(due, DELIVERED) for due in support.due_rows(lease)]
    outcomes.record([lease], ended)
    return correction


def sent_to(channel, rule):
    segment = factories.make_segment(channel, rule, str(uuid7()))
    notification = factories.make_notification(channel, segment_id=segment.id)
    support.plan(notification)
    return support.planned_ids(notification)


@pytest.mark.parametrize(
    ("outcome", "places"),
    [
        ("delivered", [0, 1, 2, 3]),
        ("bounced", [4]),
        ("received", [0, 1, 2]),
        ("clicked", [0, 1]),
        ("not_clicked", [2, 3]),
        ("not_received", [3]),
    ],
)
def test_a_follow_up_goes_to_exactly_those_with_the_outcome(channel, earlier, outcome, places):
    notification, recipients = earlier
    rule = {"notification": str(notification.id), "outcome": outcome}
    assert sent_to(channel, rule) == [recipients[place] for place in places]
    others = sent_to(channel, {"not": rule})
    assert set(others).isdisjoint(recipients[place] for place in places)
    assert len(others) == 7 - len(places)


@pytest.mark.parametrize("is_window", [True, False], ids=["read from the ledger", "channel read"])
def test_a_click_on_a_correction_is_one_on_what_it_corrects(channel, earlier, is_window):
    """Also on the correction of a correction, and not on one that came before."""
    wrong, recipients = earlier
    first = corrected(channel, wrong)
    second = corrected(channel, first)
    events_record(
        [Event(first.id, recipients[2], "clicked"), Event(second.id, recipients[3], "clicked")]
    )

    def matching(notification, outcome):
        rule = {"notification": str(notification.id), "outcome": outcome}
        return sent_to(channel, rule if is_window else {"any": [rule, {"tag": "none"}]})

    assert matching(wrong, "clicked") == recipients[:4]
    assert matching(wrong, "not_clicked") == []
    assert matching(first, "not_clicked") == recipients[:2]
    assert matching(second, "not_clicked") == recipients[:3]


def test_a_notification_without_deliveries_matches_nobody(channel, earlier):
    """Such as one whose deliveries retention has deleted."""
    notification = factories.make_notification(channel, target_platforms=["ios"])
    rule = {"notification": str(notification.id), "outcome": "delivered"}
    assert sent_to(channel, rule) == []


def test_a_window_reads_the_ledger_only_for_its_own_devices(channel, earlier):
    """Also where PostgreSQL would rather read all recipients of the notification, because the
    window has many devices."""
    notification, recipients = earlier
    factories.add_subscriptions(channel, 600)
    others = [
        Delivery(notification_id=notification.id, subscription_id=uuid7(), batch_id=1, status=1)
        for _ in range(3_000)
    ]
    Delivery.objects.bulk_create(others)
    sql.execute("ANALYZE notifications_app_delivery, subscriptions_app_subscription", {})
    named = {"notification": str(notification.id), "outcome": "not_clicked"}
    rule = {"any": [named, {"tag": "team-7"}]}  # so that the windows read the channel
    segment = factories.make_segment(channel, rule)
    sent = factories.make_notification(channel, segment_id=segment.id)
    plan_queue.start_due()
    lease = support.claim_plan()
    assert support.most_rows_read(lambda: support.plan_window(lease)) < len(others) / 2
    assert support.planned_ids(sent) == recipients[2:4]
    Delivery.objects.filter(subscription_id__in=[row.subscription_id for row in others]).delete()

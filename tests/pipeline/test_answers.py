"""What each answer of a push service changes: the recipient, its subscription and every count."""

from datetime import timedelta

import pytest

from notifications_app.delivery.types import Accepted, Deferred, Gone, Misconfigured, Rejected
from notifications_app.models import Batch, HourlyStat, Notification
from notifications_app.pipeline import counting, outcomes
from notifications_app.pipeline.lease import Renewal
from notifications_app.pipeline.transitions import Limits, transition_of
from notifications_app.states import DeliveryStatus
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.models import Subscription
from tests import factories
from tests.pipeline import support
from tests.pipeline.test_transitions import judged


def recipient_of(notification, subscription):
    row = support.delivery(notification, subscription)
    return support.due(row)


def claimed(channel, count=1):
    """A notification whose only batch is claimed, and its subscriptions."""
    rows = factories.add_subscriptions(channel, count)
    notification = factories.make_notification(channel)
    support.plan(notification)
    return notification, rows, support.claim()


def transition(notification, subscription, outcome, **limits):
    defaults = {"deadline": notification.deadline_at, "attempts": 12, "seconds": 3600}
    return transition_of(
        recipient_of(notification, subscription),
        outcome,
        registered_at=subscription.registered_at,
        now=sql.now(),
        limits=Limits(**(defaults | limits)),
    )


@pytest.mark.parametrize(
    ("mode", "options", "code"),
    [
        ("error", {"status": 400}, "bad_request"),
        ("error", {"status": 401}, "unauthorized"),
        ("error", {"status": 403}, "unauthorized"),
        ("error", {"status": 418}, "refused"),
        ("too_large", {}, "size_refused"),
        ("redirect", {"location": "https://elsewhere.example/"}, "redirected"),
        ("wns_dropped", {}, "dropped"),
    ],
)
def test_a_rejected_message_bounces_and_the_device_stays_active(
    sandbox, channel, mode, options, code
):
    (device, subscription), _ = factories.subscribe_browsers(sandbox, channel, 2)
    device.behave(mode, **options)

    notification = support.send(channel)

    assert support.counts(notification) == ("sent", 2, 1, 1)
    assert support.codes(notification) == ["", code]
    assert support.is_active(subscription)
    assert len(device.receipts) == 1


def test_a_message_too_large_for_a_browser_bounces_there_alone(sandbox, channel):
    """As for Firefox for Android, at the same push service as Firefox on computers."""
    phone = sandbox.subscribe(is_bridged=True)
    on_phone = factories.register_device(channel, phone)
    factories.subscribe_browsers(sandbox, channel)

    large = support.send(channel, data={"k": "x" * 3_000})
    small = support.send(channel, data={"k": "x" * 2_000})

    assert support.counts(large) == ("sent", 2, 1, 1)
    row = support.delivery(large, on_phone)
    assert (row.status, row.code) == (DeliveryStatus.BOUNCED, "size_refused")
    assert "constrained device" in row.detail
    assert support.counts(small) == ("sent", 2, 2, 0)


def test_a_first_attempt_is_kept_only_for_further_ones(sandbox, channel):
    ((_, subscription),) = factories.subscribe_browsers(sandbox, channel)

    row = support.delivery(support.send(channel), subscription)

    assert (row.status, row.attempts) == (DeliveryStatus.DELIVERED, 1)
    assert row.first_attempt_at is None  # it would make the row too large for its page


@pytest.mark.parametrize("mode", ["gone", "not_found"])
def test_a_dead_endpoint_bounces_and_its_subscription_expires(sandbox, channel, mode):
    (device, subscription), (_, other) = factories.subscribe_browsers(sandbox, channel, 2)
    device.behave(mode)

    notification = support.send(channel)

    assert support.counts(notification) == ("sent", 2, 1, 1)
    assert not support.is_active(subscription)
    assert subscription.expired_code == "endpoint_gone"
    assert support.is_active(other)


@pytest.mark.parametrize(
    ("mode", "options", "code"),
    [
        ("throttled", {}, "throttled"),
        ("wns_throttled", {}, "throttled"),
        ("error", {"status": 500}, "service_error"),
        ("error", {"status": 503}, "service_error"),
        ("reset", {}, "connection_failed"),
        ("close_after_accept", {}, "connection_failed"),
        ("garbage", {}, "connection_failed"),
    ],
)
def test_a_temporary_failure_is_retried_later_and_then_delivered(
    sandbox, channel, mode, options, code
):
    ((device, subscription),) = factories.subscribe_browsers(sandbox, channel)
    device.behave(mode, times=1, **options)

    notification = support.send(channel)
    assert support.counts(notification) == ("processing", 1, 0, 0)
    row = support.delivery(notification, subscription)
    assert (row.status, row.code, row.attempts) == (DeliveryStatus.WAITING, code, 1)
    assert row.first_attempt_at is not None
    support.deliver()
    assert len(device.receipts) == 1  # not due yet

    support.make_due(notification)
    support.deliver(notification)

    assert support.counts(notification) == ("sent", 1, 1, 0)
    assert support.delivery(notification, subscription).attempts == 2
    assert sum(HourlyStat.objects.values_list("deferred", flat=True)) == 1


def test_the_first_hand_over_is_when_the_first_delivery_was_counted(channel):
    factories.add_subscriptions(channel, 3)
    notification = factories.make_notification(channel)
    support.plan()
    lease = support.claim()
    first, second, third = support.due_rows(lease)

    def recorded(row, outcome):
        outcomes.record([lease], [judged(outcome, row)])
        notification.refresh_from_db()
        return notification.first_hand_over_at

    assert recorded(first, Rejected("size_refused")) is None
    before = sql.now()
    at = recorded(second, Accepted())
    assert before < at < sql.now()
    assert recorded(third, Accepted()) == at
    assert notification.finished_at > at


@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_obeyed_in_seconds_and_as_a_date(sandbox, channel, as_date):
    ((device, subscription),) = factories.subscribe_browsers(sandbox, channel)
    device.behave("throttled", retry_after=900, as_date=as_date)

    notification = support.send(channel)

    row = support.delivery(notification, subscription)
    batch = Batch.objects.get()
    assert row.due_at - row.first_attempt_at > timedelta(seconds=898)  # a date has whole seconds
    assert batch.due_at == row.due_at
    assert batch.status == "ready"


def test_deferred_recipients_of_a_batch_become_due_together(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 12)
    for device, _ in devices:
        device.behave("throttled", retry_after=900)

    notification = support.send(channel)

    moments = set(support.deliveries(notification).values_list("due_at", flat=True))
    assert len(moments) <= 2


def test_ttl_zero_means_one_attempt(sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel)
    device.behave("error", status=503)

    notification = support.send(channel, ttl=0)

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert support.codes(notification) == ["expired"]
    assert len(device.receipts) == 1


def test_a_recipient_is_given_up_after_twelve_attempts(sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel)
    device.behave("throttled")

    notification = support.send(channel)
    for _ in range(14):
        support.make_due(notification)
        support.deliver(notification)

    assert len(device.receipts) == 12
    assert support.counts(notification) == ("sent", 1, 0, 1)
    row = support.deliveries(notification).get()
    assert (row.code, row.attempts) == ("expired", 12)
    assert row.detail.startswith("throttled")


def test_a_recipient_is_given_up_an_hour_after_its_first_attempt(sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel)
    device.behave("throttled")
    notification = support.send(channel)

    for minutes in (40, 21):
        support.age(notification, minutes=minutes)
        support.make_due(notification)
        support.deliver(notification)

    assert len(device.receipts) == 2
    assert support.codes(notification) == ["expired"]
    assert support.counts(notification) == ("sent", 1, 0, 1)


def test_no_call_is_made_after_the_deadline(sandbox, channel):
    ((device, _),) = factories.subscribe_browsers(sandbox, channel)
    notification = factories.make_notification(channel)
    support.plan()
    support.end_time(notification)

    support.deliver(notification)

    assert device.receipts == []
    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert support.codes(notification) == ["expired"]


def test_an_unsubscribed_or_deleted_recipient_bounces_without_a_call(sandbox, channel):
    (left, subscription), (deleted, row), (stays, _) = factories.subscribe_browsers(
        sandbox, channel, 3
    )
    notification = factories.make_notification(channel)
    support.plan()
    subscription_unsubscribe(channel=channel, address=Address.of("web", left.endpoint))
    subscription_unsubscribe(channel=channel, address=Address.of("web", deleted.endpoint))
    Subscription.objects.filter(pk=row.pk).delete()

    support.deliver(notification)

    assert support.counts(notification) == ("sent", 3, 1, 2)
    assert support.codes(notification) == ["", "unsubscribed", "unsubscribed"]
    assert (left.receipts, deleted.receipts, len(stays.receipts)) == ([], [], 1)
    assert support.delivery(notification, subscription).attempts == 0


def test_a_device_that_registers_again_during_its_call_stays_active(sandbox, channel):
    ((device, subscription),) = factories.subscribe_browsers(sandbox, channel)
    notification, lease = _planned_and_claimed(channel)
    late = transition(notification, subscription, Gone("endpoint_gone"))

    factories.register_device(channel, device)
    outcomes.record([lease], [late])

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert support.is_active(subscription)


def test_a_gone_from_before_the_registration_expires_nothing(sandbox, channel):
    ((_, subscription),) = factories.subscribe_browsers(sandbox, channel)
    notification, lease = _planned_and_claimed(channel)
    as_of = subscription.registered_at - timedelta(seconds=1)

    outcomes.record([lease], [transition(notification, subscription, Gone("gone", as_of=as_of))])

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert support.is_active(subscription)


def test_a_gone_with_a_later_time_expires_a_subscription_that_has_not_moved(sandbox, channel):
    ((_, subscription),) = factories.subscribe_browsers(sandbox, channel)
    notification, lease = _planned_and_claimed(channel)
    as_of = sql.now() + timedelta(hours=1)

    outcomes.record([lease], [transition(notification, subscription, Gone("gone", as_of=as_of))])

    assert not support.is_active(subscription)


def _planned_and_claimed(channel):
    notification = factories.make_notification(channel)
    support.plan(notification)
    return notification, support.claim()


def test_a_suspect_that_registered_during_its_call_stays_active(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 6)
    suspect, subscription = devices[0]
    notification, lease = _planned_and_claimed(channel)
    answers = [transition(notification, row, Accepted()) for _, row in devices[1:]]
    gone = Gone("vapid_key_mismatch", suspect=True)
    answers.append(transition(notification, subscription, gone))

    factories.register_device(channel, suspect)
    outcomes.record([lease], answers)
    support.tick()

    assert support.open_plans() == 0
    assert support.is_active(subscription)


OUTCOMES = [
    Accepted(),
    Rejected("bad_request", "no"),
    Gone("endpoint_gone"),
    Gone("vapid_key_mismatch", suspect=True),
    Deferred("throttled", retry_after=3.0),
    Misconfigured("third_party_auth", "who?"),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_a_repeated_record_changes_nothing(channel, outcome):
    """A worker repeats it if it never heard that its first commit succeeded."""
    notification, (row, *_), lease = claimed(channel, 2)
    written = [transition(notification, row, outcome)]
    outcomes.record([lease], written)
    before = _everything(notification)

    outcomes.record([lease], written)

    assert _everything(notification) == before


def _everything(notification):
    hourly = HourlyStat.objects.values_list("recipients", "delivered", "bounced", "deferred")
    batch = Batch.objects.values_list(
        "delivered_count", "bounced_count", "suspect_count", "refused_count", "status"
    )
    rows = support.deliveries(notification).order_by("subscription_id")
    return (
        support.counts(notification),
        list(hourly),
        list(batch),
        list(rows.values_list("status", "attempts", "code", "due_at", "finished_at")),
    )


def test_text_that_cannot_be_stored_affects_only_its_recipient(channel):
    notification, rows, lease = claimed(channel, 5)
    bad = [Rejected("bad_request", "nul \x00"), Rejected("bad_request", "lone \ud800")]
    said = [Accepted(), bad[0], Accepted(), bad[1], Accepted()]

    outcomes.record(
        [lease],
        [transition(notification, row, outcome) for row, outcome in zip(rows, said, strict=True)],
    )

    assert support.counts(notification) == ("sent", 5, 3, 2)
    assert support.codes(notification) == ["", "", "", "internal_error", "internal_error"]


def test_an_outcome_that_cannot_be_written_is_reported_and_does_not_loop(
    tampered_channel, monkeypatch
):
    notification, rows, lease = claimed(tampered_channel, 1)
    monkeypatch.setattr(counting, "COUNT_HOUR", "SELECT 1/0")

    renewal = outcomes.record([lease], [transition(notification, rows[0], Accepted())])

    assert renewal == Renewal(with_refused_rows={lease.batch_id}, is_written=False)
    assert support.counts(notification) == ("processing", 1, 0, 0)


def test_two_workers_that_end_the_last_batches_at_once_end_the_notification(channel, settings):
    settings.BATCH_SIZE = 1
    subscriptions = {row.id: row for row in factories.add_subscriptions(channel, 2)}

    def end(notification, lease):
        row = support.deliveries(notification).get(batch_id=lease.batch_id)
        accepted = transition(notification, subscriptions[row.subscription_id], Accepted())
        return lambda: outcomes.record([lease], [accepted])

    for _ in range(10):
        notification = factories.make_notification(channel)
        support.plan(notification)
        support.in_threads(*[end(notification, support.claim()) for _ in range(2)])

        assert support.counts(notification) == ("sent", 2, 2, 0)


def test_concurrent_outcomes_and_registrations_do_not_deadlock(sandbox, channel):
    """There is one lock order; a deadlock would raise here."""
    devices = factories.subscribe_browsers(sandbox, channel, 40)
    for device, _ in devices[::2]:
        device.behave("gone")
    factories.make_notification(channel)
    factories.make_notification(channel)
    support.plan()

    def come_and_go():
        for device, _ in devices:
            factories.register_device(channel, device)
            subscription_unsubscribe(channel=channel, address=Address.of("web", device.endpoint))

    support.in_threads(support.deliver, support.deliver, come_and_go, come_and_go, support.tick)

    support.deliver()
    assert set(Notification.objects.values_list("status", flat=True)) == {"sent"}

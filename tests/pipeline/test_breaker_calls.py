"""What an open or half-open breaker does to the calls of a push service."""

from datetime import timedelta

import pytest

from notifications_app.models import Batch
from notifications_app.pipeline import breakers, dispatch
from notifications_app.states import CAREFUL_AFTER_LEASE_LOSSES
from tests import factories
from tests.pipeline import support

pytestmark = pytest.mark.usefixtures("one_breaker_window")


def service_of(sandbox):
    return sandbox.origin.removeprefix("http://")


def test_everything_is_delivered_while_redis_is_unreachable(sandbox, channel, settings):
    devices = factories.subscribe_browsers(sandbox, channel, 3)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    notification = factories.make_notification(channel)
    support.plan()
    support.deliver(notification)

    assert support.counts(notification) == ("sent", 3, 3, 0)
    assert [len(device.receipts) for device, _ in devices] == [1, 1, 1]


def test_an_outage_stops_the_calls_to_its_push_service_and_to_no_other(
    sandbox, other_sandbox, channel, settings
):
    settings.UNWRITTEN_OUTCOMES = 20
    failing = factories.subscribe_browsers(sandbox, channel, 60)
    for device, _ in failing:
        device.behave("error", status=503)
    healthy = factories.subscribe_browsers(other_sandbox, channel, 30)

    notification = support.send(channel)

    assert support.counts(notification) == ("processing", 90, 30, 0)
    assert all(len(device.receipts) == 1 for device, _ in healthy)
    called = sum(len(device.receipts) for device, _ in failing)
    assert 20 <= called < 60
    batch = Batch.objects.get(status="ready")
    assert batch.due_at - batch.claimed_at > timedelta(seconds=10)

    support.make_due(notification)
    support.deliver()
    assert sum(len(device.receipts) for device, _ in failing) == called  # not even claimed


def half_open(service, channel):
    breakers.record(service, channel.id, responded=0, outages=20)
    support.end_breaker_waits()
    assert breakers.is_half_open(service, channel.id)


def test_after_an_outage_twenty_calls_probe_and_then_everybody_is_called(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 50)
    service = service_of(sandbox)
    half_open(service, channel)
    notification = factories.make_notification(channel)
    support.plan()

    dispatch.deliver_batches([support.claim()])
    assert sum(len(device.receipts) for device, _ in devices) == breakers.PROBE_CALLS
    assert not breakers.is_half_open(service, channel.id)

    support.deliver(notification)
    assert support.counts(notification) == ("sent", 50, 50, 0)
    assert [len(device.receipts) for device, _ in devices] == [1] * 50


def test_a_probe_of_a_careful_batch_leaves_it_careful(sandbox, channel):
    """The other recipients were not called, so the one that crashes workers may be among them."""
    factories.subscribe_browsers(sandbox, channel, 25)
    half_open(service_of(sandbox), channel)
    factories.make_notification(channel)
    support.plan()
    Batch.objects.update(lease_losses=CAREFUL_AFTER_LEASE_LOSSES)

    dispatch.deliver_batches([support.claim()])

    batch = Batch.objects.get()
    assert batch.delivered_count == breakers.PROBE_CALLS
    assert batch.lease_losses == CAREFUL_AFTER_LEASE_LOSSES


def test_a_probe_is_judged_by_all_of_its_answers_and_not_by_the_first(sandbox, channel, settings):
    settings.FLUSH_SECONDS = 0.05
    devices = factories.subscribe_browsers(sandbox, channel, 20)
    for device, _ in devices[:9]:
        device.behave("error", status=503)
    for device, _ in devices[9:]:
        device.behave("slow", seconds=1.0)
    half_open(service_of(sandbox), channel)

    support.send(channel)

    assert not breakers.is_half_open(service_of(sandbox), channel.id)
    assert breakers.held() == []


def test_a_probe_makes_first_attempts_and_no_retries(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 40)
    for device, _ in devices[:15]:  # the first by id
        device.behave("error", status=503)
    notification = factories.make_notification(channel)
    support.plan()
    tried = [subscription.id for _, subscription in devices[:15]]
    support.deliveries(notification).filter(subscription_id__in=tried).update(attempts=1)
    half_open(service_of(sandbox), channel)

    dispatch.deliver_batches([support.claim()])

    called = [len(device.receipts) for device, _ in devices]
    assert (sum(called[:15]), sum(called[15:])) == (0, breakers.PROBE_CALLS)
    assert not breakers.is_half_open(service_of(sandbox), channel.id)


def retries_left(sandbox, channel, devices):
    """A notification whose recipients all met an outage once; the breaker's wait is over."""
    for device, _ in devices:
        device.behave("error", status=503)
    notification = support.send(channel)
    assert breakers.held() == [breakers.of_channel(service_of(sandbox), channel.id)]
    support.end_breaker_waits()
    support.make_due(notification)
    return notification


def test_an_answered_retry_closes_the_breaker_if_only_retries_are_left(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 30)
    notification = retries_left(sandbox, channel, devices)
    for device, _ in devices[10:]:
        device.behave("accept")

    for _ in range(3):
        support.make_due(notification)
        support.deliver(notification)

    assert not breakers.is_half_open(service_of(sandbox), channel.id)
    assert support.counts(notification) == ("processing", 30, 20, 0)


def test_failed_retries_neither_open_the_breaker_again_nor_prevent_other_probes(sandbox, channel):
    service = service_of(sandbox)
    notification = retries_left(
        sandbox, channel, factories.subscribe_browsers(sandbox, channel, 30)
    )
    before = sum(support.deliveries(notification).values_list("attempts", flat=True))

    support.deliver(notification)

    tried = sum(support.deliveries(notification).values_list("attempts", flat=True)) - before
    assert tried == breakers.PROBE_CALLS
    assert breakers.held() == []
    assert breakers.is_half_open(service, channel.id)
    batch = Batch.objects.get(notification=notification)
    assert batch.due_at - batch.claimed_at > timedelta(seconds=breakers.WAIT_SECONDS - 5)

    ((_, subscription),) = factories.subscribe_browsers(sandbox, channel)
    later = factories.make_notification(channel, only_subscription_id=subscription.id)
    support.plan()
    support.deliver(later)
    assert support.counts(later) == ("sent", 1, 1, 0)
    assert not breakers.is_half_open(service, channel.id)


def test_a_throttled_call_is_no_outage(sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 30)
    for device, _ in devices:
        device.behave("throttled", times=1)

    notification = support.send(channel)

    assert breakers.held() == []
    support.make_due(notification)
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 30, 30, 0)


def test_a_probe_without_recipients_left_is_not_taken(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel)
    half_open(service_of(sandbox), channel)
    notification = factories.make_notification(channel)
    support.plan()
    support.end_time(notification)

    support.deliver(notification)

    assert support.counts(notification) == ("sent", 1, 0, 1)
    assert breakers.take_probe(service_of(sandbox), channel.id)


def test_ffailing_retries_of_some_recipients_do_not_open_the_breaker(sandbox, channel, settings):
    settings.FLUSH_SECONDS = 30  # all answers in one flush, because failures may come first
    devices = factories.subscribe_browsers(sandbox, channel, 80)
    for device, _ in devices[::3]:
        device.behave("error", status=503)
    notification = support.send(channel)
    assert support.counts(notification) == ("processing", 80, 53, 0)

    for _ in range(3):
        support.make_due(notification)
        support.deliver(notification)

    assert breakers.held() == []
    assert support.send(channel).delivered_count == 53


@pytest.mark.parametrize("answered", [0, 1])
def test_a_batch_stops_after_twenty_calls_in_a_row_that_fail(answered, sandbox, channel, settings):
    """Before the next flush. After an answer, they are counted anew."""
    settings.CALLS_IN_FLIGHT = 1
    settings.FLUSH_SECONDS = 60
    devices = factories.subscribe_browsers(sandbox, channel, 50)
    in_order = sorted(devices, key=lambda each: each[1].id)
    for place, (device, _) in enumerate(in_order, 1):
        device.behave("accept" if answered and place == breakers.LEAST_CALLS else "reset")

    notification = support.send(channel)

    called = sum(len(device.receipts) for device, _ in devices)
    assert called == breakers.LEAST_CALLS * (1 + answered)
    assert support.counts(notification) == ("processing", 50, answered, 0)

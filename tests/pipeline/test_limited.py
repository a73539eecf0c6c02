"""Sends to a push service that limits the channel, through a worker and over real sockets.

A minute of the sandbox and of the pipeline lasts six seconds here, and all other times are as much
shorter.
"""

import time
from hashlib import sha256

import pytest
import redis
from django.db.models.functions import Now

from notifications_app.models import Batch, Delivery
from notifications_app.pipeline import breakers, dispatch, transitions, web_rate
from notifications_app.pipeline.recording import Recorder
from pushsvc.common.endpoints import service_of
from pushsvc.common.store.redis_client import redis_client
from tests import factories
from tests.pipeline import support
from tests.pipeline.rate_model import make_known

SCALE = 10
A_MINUTE = 300
RECIPIENTS = 1500


@pytest.fixture
def brisk(settings, monkeypatch):
    """All times are shorter. As many calls are in flight for a minute's messages as 100 for the
    1,000 that Chrome's push service accepts."""
    for name in ("MINUTE", "WINDOW", "PROBE", "TURN", "BUCKET", "FAST", "SUSPICION"):
        seconds = getattr(web_rate, f"{name}_SECONDS")
        monkeypatch.setattr(web_rate, f"{name}_SECONDS", seconds / SCALE)
    monkeypatch.setattr(transitions, "_LIMITED_WAIT", transitions._LIMITED_WAIT / SCALE)
    monkeypatch.setattr(transitions, "_FIRST_WAIT", transitions._FIRST_WAIT / SCALE)
    settings.CALLS_IN_FLIGHT = A_MINUTE // 10


def subscribe(sandbox, channel, count):
    """Devices of the sandbox, written at once. Nothing was sent to them before."""
    devices = [sandbox.subscribe() for _ in range(count)]
    service = service_of(sandbox.origin, frozenset({sandbox.origin}))
    factories.add_each(
        channel,
        [
            {
                "address": each.endpoint,
                "address_sha256": sha256(each.endpoint.encode()).digest(),
                "p256dh": each.p256dh,
                "auth": each.auth,
                "push_service": service,
            }
            for each in devices
        ],
    )
    return devices


def named(sandbox):
    return sandbox.origin.removeprefix("http://")


def work():
    """As workers do, which look for due batches again and again."""
    dispatch.deliver("web", seconds=30)
    time.sleep(0.05)


def work_until_sent(notification):
    support.until(lambda: work() or support.is_sent(notification), seconds=300)


def calls(devices):
    return sum(len(device.receipts) for device in devices)


def make_limited(sandbox, channel, per_minute=600):
    """A limit is known, and the bucket has calls for a moment."""
    make_known(named(sandbox), channel.id, per_minute)


@pytest.mark.parametrize("retry_after", [False, True])
def test_all_are_reached_with_few_calls_in_vain(sandbox, channel, brisk, retry_after):
    devices = subscribe(sandbox, channel, RECIPIENTS)
    sandbox.limit(A_MINUTE, retry_after=retry_after, seconds=60 / SCALE)
    notification = factories.make_notification(channel)
    support.plan()

    work_until_sent(notification)

    assert support.counts(notification) == ("sent", RECIPIENTS, RECIPIENTS, 0)
    assert {sandbox.accepted_count(device.id) for device in devices} == {1}
    assert calls(devices) <= 1.15 * RECIPIENTS
    assert [each.service for each in web_rate.limits_of(channel.id)] == [named(sandbox)]


def test_what_redis_loses_in_mid_send_is_learned_again_and_nobody_is_lost(sandbox, channel, brisk):
    devices = subscribe(sandbox, channel, RECIPIENTS // 2)
    sandbox.limit(A_MINUTE, seconds=60 / SCALE)
    notification = factories.make_notification(channel)
    support.plan()
    support.until(lambda: work() or web_rate.limits())

    redis_client().flushdb()
    work_until_sent(notification)

    assert support.counts(notification) == ("sent", len(devices), len(devices), 0)
    assert {sandbox.accepted_count(device.id) for device in devices} == {1}


def test_another_channel_at_the_push_service_does_not_wait(sandbox, channel, other_channel, brisk):
    subscribe(sandbox, channel, 300)
    others = subscribe(sandbox, other_channel, 50)
    sandbox.limit(100, retry_after=True)
    limited = support.send(channel)
    support.until(lambda: work() or web_rate.limits())
    assert support.counts(limited)[0] == "processing"

    beside = support.send(other_channel)

    assert support.counts(beside) == ("sent", 50, 50, 0)
    assert calls(others) == 50
    support.end_time(limited)
    support.tick()


@pytest.mark.parametrize("batch_size", [1000, 40])
@pytest.mark.parametrize("are_proven", [False, True])
def test_devices_of_a_stranger_that_are_throttled_slow_no_other_device(
    sandbox, channel, settings, batch_size, are_proven
):
    """Also if they fill a batch, and are the first of all."""
    settings.BATCH_SIZE = batch_size
    settings.CALLS_IN_FLIGHT = 10
    strange = subscribe(sandbox, channel, 40)
    for device in strange:
        device.behave("throttled", retry_after=3600)
    honest = subscribe(sandbox, channel, 80)
    if are_proven:
        channel.subscriptions.filter(address__in=[d.endpoint for d in honest]).update(
            is_proven=True
        )
    notification = factories.make_notification(channel)
    support.plan()

    support.until(lambda: work() or support.counts(notification)[2] == 80)

    assert calls(honest) == 80
    assert web_rate.limits() == []
    assert web_rate.begin(named(sandbox), channel.id, 1000).most is None
    support.end_time(notification)
    support.tick()


def test_a_throttled_call_under_a_limit_is_no_attempt(sandbox, channel):
    ((device, subscription),) = factories.subscribe_browsers(sandbox, channel)
    make_limited(sandbox, channel)
    device.behave("throttled", times=20)
    notification = support.send(channel)

    for _ in range(19):
        row = support.delivery(notification, subscription)
        assert (row.status, row.code, row.attempts, row.first_attempt_at) == (
            0, "throttled", 0, None,
        )  # fmt: skip
        support.make_due(notification)
        redis_client().delete(web_rate.HELD)
        support.deliver()

    support.make_due(notification)
    redis_client().delete(web_rate.HELD)
    support.deliver()
    assert support.counts(notification) == ("sent", 1, 1, 0)
    assert len(device.receipts) == 21


def test_under_a_limit_only_the_deadline_ends_a_recipient(sandbox, channel):
    """Also one that had used up its attempts and its hour before the limit was known."""
    ((device, _),) = factories.subscribe_browsers(sandbox, channel)
    device.behave("throttled", times=1)
    notification = support.send(channel)
    support.deliveries(notification).update(attempts=12)
    support.age(notification, hours=2)
    make_limited(sandbox, channel)

    support.make_due(notification)
    support.deliver(notification)

    assert support.counts(notification) == ("sent", 1, 1, 0)


def test_a_recipient_that_waits_for_a_limit_expires_at_the_deadline(sandbox, channel):
    factories.subscribe_browsers(sandbox, channel, 3)
    make_limited(sandbox, channel, per_minute=60)
    redis_client().zadd(web_rate.HELD, {breakers.of_channel(named(sandbox), channel.id): 10**14})
    notification = support.send(channel)
    assert support.counts(notification) == ("processing", 3, 0, 0)

    support.end_time(notification)
    support.tick()

    assert support.counts(notification) == ("sent", 3, 0, 3)
    assert support.codes(notification) == ["expired"] * 3


def test_without_a_limit_a_throttled_device_is_tried_again_as_ever(sandbox, channel):
    ((device, subscription),) = factories.subscribe_browsers(sandbox, channel)
    device.behave("wns_throttled", times=1)

    notification = support.send(channel)

    row = support.delivery(notification, subscription)
    assert (row.code, row.attempts) == ("throttled", 1)
    assert row.first_attempt_at is not None
    support.make_due(notification)
    support.deliver(notification)


def test_recipients_over_the_limit_are_handed_back_uncalled(sandbox, channel, monkeypatch):
    monkeypatch.setattr(web_rate, "TURN_SECONDS", 600.0)
    devices = subscribe(sandbox, channel, 30)
    make_limited(sandbox, channel, per_minute=120)  # ten at once

    notification = support.send(channel)

    assert support.counts(notification) == ("processing", 30, 10, 0)
    assert calls(devices) == 10
    waiting = support.deliveries(notification).filter(status=0)
    assert set(waiting.values_list("attempts", "code", "first_attempt_at")) == {(0, "", None)}
    (batch,) = Batch.objects.filter(notification=notification)
    assert (batch.status, batch.lease_losses) == ("ready", 0)
    assert batch.due_at > batch.claimed_at
    support.make_due(notification)
    support.deliver()
    not_claimed = Batch.objects.get(notification=notification)
    assert not_claimed.lease_number == batch.lease_number
    redis_client().flushdb()
    support.deliver(notification)
    assert support.counts(notification) == ("sent", 30, 30, 0)


def test_who_was_not_called_comes_before_who_was_throttled(sandbox, channel):
    throttled = subscribe(sandbox, channel, 10)
    for device in throttled:
        device.behave("throttled")
    later = subscribe(sandbox, channel, 10)
    make_limited(sandbox, channel, per_minute=120)
    notification = support.send(channel)
    assert (calls(throttled), calls(later)) == (10, 0)

    Delivery.objects.filter(code="throttled").update(due_at=Now())
    Batch.objects.update(due_at=Now())
    redis_client().flushdb()
    make_limited(sandbox, channel, per_minute=120)
    support.deliver(notification)

    assert (calls(throttled), calls(later)) == (10, 10)
    support.end_time(notification)
    support.tick()


@pytest.mark.parametrize("recipients", [1, 400])
def test_a_pass_without_a_limit_makes_no_more_round_trips_to_redis(
    sandbox, channel, recipients, monkeypatch
):
    """One before the claim, one before the calls, and one for each flush."""
    subscribe(sandbox, channel, recipients)
    factories.make_notification(channel)
    support.plan()
    trips = []
    send = redis.Connection.send_packed_command
    monkeypatch.setattr(
        redis.Connection,
        "send_packed_command",
        lambda self, *sent, **how: (trips.append(1), send(self, *sent, **how)),
    )
    flushes = []
    record = Recorder._report_to_services
    monkeypatch.setattr(
        Recorder,
        "_report_to_services",
        lambda self, *seen: (flushes.append(1), record(self, *seen)),
    )

    support.deliver()

    assert len(trips) == 2 + len(flushes)

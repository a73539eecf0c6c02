"""Real workers and beats, stopped gently and killed."""

import os

import pytest
from django.conf import settings

from notifications_app.models import Batch
from tests import factories
from tests.calls import standing_still, when_called
from tests.pipeline import support
from tests.pipeline.processes import kill


def only_devices(pairs):
    return [device for device, _ in pairs]


def received(devices):
    return [len(device.receipts) for device, _ in devices]


def test_two_beats_and_two_workers_deliver_notifications_completely(processes, sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 5)
    now = factories.make_notification(channel)
    for name in ("worker-plan", "worker-web", "beat", "beat"):
        processes.start(name)

    support.until(lambda: support.is_sent(now))
    devices[0][0].behave("throttled", times=1)
    later = factories.make_notification(channel)  # no wakeup: a tick finds it, and its retry
    support.until(lambda: support.is_sent(later))

    assert support.counts(now) == support.counts(later) == ("sent", 5, 5, 0)
    assert received(devices) == [3, 2, 2, 2, 2]


def test_a_killed_worker_repeats_only_unwritten_outcomes(processes, sandbox, channel):
    devices = factories.subscribe_browsers(sandbox, channel, 150)
    notification = factories.make_notification(channel)
    support.plan()
    # More than are called at once, so that some are answered.
    with standing_still(only_devices(devices), nth=settings.CALLS_IN_FLIGHT + 10) as called:
        victim = processes.start("worker-web")
        called()
        support.until(lambda: Batch.objects.get().delivered_count > 0)
        kill(victim)
    batch = Batch.objects.get()
    assert batch.status == "leased"
    written = set(
        support.deliveries(notification).filter(status=1).values_list("subscription_id", flat=True)
    )
    support.lose_lease(batch.id)
    support.tick()
    processes.start("worker-web")
    support.until(lambda: support.is_sent(notification))

    assert support.counts(notification) == ("sent", 150, 150, 0)
    assert set(received(devices)) <= {1, 2}
    for device, subscription in devices:
        assert len(device.receipts) == 1 or subscription.id not in written


@pytest.mark.parametrize("tell", [os.kill, os.killpg], ids=["main process", "whole group"])
def test_a_worker_that_is_told_to_stop_repeats_nothing_and_hands_the_rest_back(
    tell, processes, sandbox, channel
):
    devices = factories.subscribe_browsers(sandbox, channel, 250)
    notification = factories.make_notification(channel)
    support.plan()

    told = when_called(only_devices(devices), 90, lambda: processes.stop_gently(worker, tell))
    worker = processes.start("worker-web")

    told.result(60)
    assert worker.wait(timeout=60) == 0
    batch = Batch.objects.get()
    assert (batch.status, batch.lease_losses) == ("ready", 0)
    assert batch.delivered_count == sum(received(devices)) < 250
    support.deliver(notification)
    assert received(devices) == [1] * 250
    assert support.counts(notification) == ("sent", 250, 250, 0)

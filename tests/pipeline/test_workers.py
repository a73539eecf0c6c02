"""Real workers and beats, stopped gently and killed."""

import os
import signal

import pytest

from notifications_app.models import Batch
from tests.pipeline import support
from tests.pipeline.processes import kill


def slow_devices(sandbox, channel, count):
    devices = support.subscribe(sandbox, channel, count)
    for device, _ in devices[count // 3 :]:
        device.behave("slow", seconds=3.0)
    return devices


def received(devices):
    return [len(device.receipts) for device, _ in devices]


def test_two_beats_and_workers_take_notifications_to_their_end(processes, sandbox, channel):
    devices = support.subscribe(sandbox, channel, 5)
    now = support.notify(channel)
    for name in ("worker-plan", "worker-web", "beat", "beat"):
        processes.start(name)

    support.until(lambda: support.is_sent(now), seconds=40)
    devices[0][0].behave("throttled", times=1)
    later = support.notify(channel)  # nobody rings: a tick finds it, and its retry
    support.until(lambda: support.is_sent(later), seconds=40)

    assert support.counts(now) == support.counts(later) == ("sent", 5, 5, 0)
    assert received(devices) == [3, 2, 2, 2, 2]


def test_a_worker_that_is_killed_repeats_only_what_was_not_written(processes, sandbox, channel):
    devices = slow_devices(sandbox, channel, 150)
    notification = support.notify(channel)
    support.plan()
    victim = processes.start("worker-web")
    support.until(lambda: Batch.objects.get().delivered_count > 0, seconds=40)
    support.until(lambda: sum(received(devices)) > 60)

    kill(victim)
    batch = Batch.objects.get()
    assert batch.status == "leased"
    written = set(
        support.deliveries(notification).filter(status=1).values_list("subscription_id", flat=True)
    )
    for device, _ in devices:
        device.behave("accept")
    support.lapse(batch.id)
    support.tick()
    processes.start("worker-web")
    support.until(lambda: support.is_sent(notification), seconds=40)

    assert support.counts(notification) == ("sent", 150, 150, 0)
    assert set(received(devices)) <= {1, 2}
    for device, subscription in devices:
        assert len(device.receipts) == 1 or subscription.id not in written


@pytest.mark.parametrize("tell", [os.kill, os.killpg], ids=["main process", "whole group"])
def test_a_worker_that_is_told_to_stop_doubles_nothing_and_hands_the_rest_back(
    tell, processes, sandbox, channel
):
    devices = slow_devices(sandbox, channel, 250)
    notification = support.notify(channel)
    support.plan()
    worker = processes.start("worker-web")
    support.until(lambda: sum(received(devices)) > 90, seconds=40)

    tell(worker.pid, signal.SIGTERM)

    assert worker.wait(timeout=20) == 0
    batch = Batch.objects.get()
    assert (batch.status, batch.lapses) == ("ready", 0)
    assert batch.delivered_count == sum(received(devices)) < 250
    support.deliver(notification)
    assert received(devices) == [1] * 250
    assert support.counts(notification) == ("sent", 250, 250, 0)

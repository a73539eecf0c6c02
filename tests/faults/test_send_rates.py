"""A send's own rate, judged by when its calls reach the sandboxes."""

import os
import time

from tests.faults.exactness import assert_exact
from tests.faults.processes import PLATFORMS, until
from tests.faults.support import audience, pass_waits, requests, wait_at_random

RATE = 600  # recipients a minute: ten a second, and batches of a hundred
EACH = 400 if os.environ.get("FAULTS_LONG") else 100
_BATCH = RATE // 6
_AHEAD = 2  # seconds


def calls(channel):
    """The times at which the requests came, in order."""
    return sorted(
        receipt.at for device in channel.devices.values() for receipt in list(device.receipts)
    )


def most_within(times, seconds):
    """The most requests in any span of so many seconds."""
    most = begin = 0
    for end, moment in enumerate(times, 1):
        while times[begin] < moment - seconds:
            begin += 1
        most = max(most, end - begin)
    return most


def promised(seconds):
    return RATE * (seconds + _AHEAD) / 60 + _BATCH


def kill_a_worker(system, channel, notification):
    platform = system.random.choice(PLATFORMS)
    system.kill(f"worker-{platform}")
    system.end_leases(platform)
    system.run_all()


def pause(system, channel, notification):
    assert channel.change(notification, "pause") == 200
    wait_at_random(system, 3.0)
    assert channel.change(notification, "resume") == 200


def refuse(system, channel, notification):
    """An outage of all push services for a moment."""
    for device in channel.devices.values():
        device.behave("error", status=503)
    wait_at_random(system, 2.0)
    for device in channel.devices.values():
        device.behave("accept")
    pass_waits(channel)


def test_no_span_of_time_has_more_calls_than_the_rate_allows(system):
    """Two processes for each of three platforms take batches of one send, through kill -9, a pause
    and an outage, each at a random time."""
    channel = system.channel()
    audience(channel, EACH)
    notification = channel.send(*PLATFORMS, rate_per_minute=RATE)
    acts = [kill_a_worker, pause, refuse]
    system.random.shuffle(acts)
    for number, act in enumerate(acts, 1):
        part = number * EACH * len(PLATFORMS) // 5
        until(lambda part=part: requests(channel) >= part, "a part is called")
        act(system, channel, notification)
    ended = time.monotonic()
    while time.monotonic() < ended + 60 and requests(channel) < EACH * len(PLATFORMS):
        pass_waits(channel)
        time.sleep(0.5)
    assert_exact(channel, [notification])
    times = calls(channel)
    # Requests of a claim come within a moment of it, which a busy machine may stretch.
    for seconds in (1, 5, 10, 60):
        assert most_within(times, seconds) <= promised(seconds + 1), seconds

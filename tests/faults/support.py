"""Audiences, moments and sizes that the fault suite's tests share."""

import itertools
import os
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager

from tests.faults.scale import SCALE
from tests.faults.system import PLATFORMS, until


def many(count):
    """More of them in `make soak`."""
    return count * SCALE


def lasting(short, whole):
    """Seconds: the whole time in `make soak`, a part of it in `make test`."""
    return whole if os.environ.get("FAULTS_LONG") else short


def audience(channel, count, platforms=PLATFORMS):
    """As many devices on each platform, with good credentials; [(subscription id, device)]."""
    if "android" in platforms:
        channel.store_google()
    if "ios" in platforms:
        channel.store_apple()
    return [pair for platform in platforms for pair in channel.subscribe(count, platform)]


def requests(channel, platforms=PLATFORMS):
    """How many requests the devices of the channel were sent."""
    return sum(
        len(device.receipts)
        for subscription_id, device in channel.devices.items()
        if channel.platform_of[subscription_id] in platforms
    )


def await_part(channel, part, *, since=0):
    """Until so much of the audience was sent something, after the first `since` requests."""
    wanted = since + part * len(channel.devices)
    until(lambda: requests(channel) >= wanted, f"{wanted:.0f} requests came")


@contextmanager
def each_in_the_middle(channel, platforms, act):
    """`act(platform)` for each platform, while it answers the first request to one of its devices:
    a tenth to three tenths of them were called before. So the moment never passes unseen, however
    busy the machine is: that answer is not given before `act` returns.

    Sends inside the block; its end waits until all have acted, and raises what they raised.
    """
    part = channel.system.random.uniform(0.1, 0.3)
    acts = {platform: _act_in_the_middle(channel, platform, part, act) for platform in platforms}
    yield
    for platform, done in acts.items():
        until(done.done, f"{platform} is in the middle of its calls")
        done.result()


def _act_in_the_middle(channel, platform, part, act):
    """A future of what `act` returns, in the sandbox's thread."""
    devices = [
        device for id_, device in channel.devices.items() if channel.platform_of[id_] == platform
    ]
    done = Future()
    called = itertools.count(1)
    nth = max(1, round(part * len(devices)))

    def note_first_call():
        if next(called) == nth:
            try:
                done.set_result(act(platform))
            except Exception as error:  # noqa: BLE001 (raised where the test waits)
                done.set_exception(error)

    for device in devices:
        device.receipts = _Receipts(note_first_call)
    return done


class _Receipts(list):
    """Of a device that nobody has called yet. The sandbox adds a receipt before it answers."""

    def __init__(self, at_first):
        super().__init__()
        self._at_first = at_first

    def append(self, receipt):
        super().append(receipt)
        if len(self) == 1:
            self._at_first()


def wait_at_random(system, longest):
    time.sleep(system.random.uniform(0, longest))


def status(channel, notification_id):
    return channel.system.value(
        "SELECT status FROM notifications_app_notification WHERE id = %s", [notification_id]
    )


def is_planned(channel, notification_id):
    return channel.system.value(
        "SELECT coalesce(bool_and(status <> 'planning'), false) FROM notifications_app_plan"
        " WHERE notification_id = %s",
        [notification_id],
    )


def seconds_taken(channel, notification_id):
    """From acceptance to the last outcome, by the database's clock."""
    return float(
        channel.system.value(
            "SELECT extract(epoch FROM finished_at - created_at)"
            " FROM notifications_app_notification WHERE id = %s",
            [notification_id],
        )
    )


@contextmanager
def meanwhile(act, *, times=None):
    """Calls `act()` in a thread: again and again until the block ends, or so many times."""
    over = threading.Event()
    failures = []

    def repeat():
        try:
            for _ in range(times) if times else iter(over.is_set, True):
                act()
        except Exception as error:  # noqa: BLE001 (raised below, where it is seen)
            failures.append(error)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failures:
        raise failures[0]

"""Audiences, moments and sizes that the fault suite's tests share."""

import os
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC
from functools import partial

from tests.calls import standing_still, when_called
from tests.faults.processes import PLATFORMS, until
from tests.faults.scale import SCALE


def many(count):
    """A larger number in `make soak`."""
    return count * SCALE


def lasting(short, whole):
    """Seconds: the full time in `make soak`, a part of it in `make test`."""
    return whole if os.environ.get("FAULTS_LONG") else short


def audience(channel, count, platforms=PLATFORMS):
    """So many devices on each platform, with valid credentials; [(subscription id, device)]."""
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


def assert_called_once(channel, recipients):
    """Each of so many recipients was called once, and once more for each call that timed out."""
    assert recipients <= requests(channel) <= recipients + timed_out(channel)


def timed_out(channel):
    """How many calls timed out. On a busy machine one can, and then nobody knows whether the push
    service took the message."""
    recorded = channel.system.fields("outcomes.recorded")
    own = [each["codes"] for each in recorded if each["channel"] == channel.id]
    return sum(codes.get("timeout", 0) for codes in own)


def await_part(channel, part, *, since=0):
    """Waits until this part of the audience was sent something, after the first `since`
    requests."""
    wanted = since + part * len(channel.devices)
    until(lambda: requests(channel) >= wanted, f"{wanted:.0f} requests came")


@contextmanager
def each_in_the_middle(channel, platforms, act):
    """`act(platform)` for each platform in the middle of its calls: see `tests.calls`. A tenth to
    three tenths of the devices that had not been called before the block are called by then.

    No worker may call before the block. Its end waits until all have acted, and raises what they
    raised.
    """
    part = channel.system.random.uniform(0.1, 0.3)
    acts = {}
    for platform in platforms:
        devices, nth = _share(channel, platform, part)
        acts[platform] = when_called(devices, nth, partial(act, platform))
    yield
    for platform, done in acts.items():
        until(done.done, f"{platform} is in the middle of its calls")
        done.result()


@contextmanager
def standing_still_early(channel, platforms):
    """From one of the first calls to each platform to the end of the block, its sandbox gives no
    answer. Yields a function that waits for these calls: then most devices are yet to be called.
    """
    part = channel.system.random.uniform(0.02, 0.1)
    with ExitStack() as stack:
        shares = [_share(channel, platform, part) for platform in platforms]
        waits = [stack.enter_context(standing_still(*share)) for share in shares]

        def wait_until_called():
            for wait in waits:
                wait()

        yield wait_until_called


def _share(channel, platform, part):
    """The platform's devices that were not called yet, and which of their calls ends this part of
    all."""
    ids = [id_ for id_, of in channel.platform_of.items() if of == platform]
    devices = [channel.devices[id_] for id_ in ids if not channel.devices[id_].receipts]
    return devices, max(1, round(part * len(devices)))


def end_time(channel, notification_id):
    """Moves the notification's deadline, and that of its parts, into the past."""
    channel.system.rows(
        "WITH plans AS (UPDATE notifications_app_plan SET deadline_at = now() - '1 s'::interval"
        " WHERE notification_id = %s)"
        " UPDATE notifications_app_notification SET deadline_at = now() - '1 s'::interval"
        " WHERE id = %s AND deadline_at IS NOT NULL",
        [notification_id, notification_id],
    )


def pass_waits(channel):
    """Makes recipients that wait for another attempt due, as if the time had passed."""
    channel.system.rows(_PASS_WAITS, [channel.id])


def send_later(channel, *platforms):
    """A notification that is not due before `fall_due`, however long its acceptance takes."""
    system = channel.system
    moment = system.value("SELECT now() + '1 hour'::interval").astimezone(UTC)
    return channel.send(*platforms, scheduled_at=moment.isoformat())


def fall_due(system, notification_ids, *, seconds):
    """Makes each notification due at its own moment within so many seconds from now."""
    system.rows(_FALL_DUE, {"ids": list(notification_ids), "seconds": seconds})


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


def planned(channel, notification_id):
    """How many recipients have been planned."""
    return channel.system.value(
        "SELECT coalesce(sum(recipient_count), 0) FROM notifications_app_plan"
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
    """Calls `act()` in a thread, so many times or until the block ends."""
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


@contextmanager
def under_load(channel):
    """In the block, a client sends to some devices of each platform all the time, and repeats what
    nobody answered. Yields the ids of what was accepted."""
    audience(channel, many(30))
    accepted = []

    def send():
        await_part(channel, len(accepted) - 2)  # no more than three are being sent
        accepted.append(channel.send(*PLATFORMS))
        wait_at_random(channel.system, 0.3)

    with meanwhile(send):
        yield accepted


_PASS_WAITS = """
WITH waiting AS (
  SELECT id FROM notifications_app_batch
  WHERE channel_id = %s AND status = 'ready' AND due_at > now() FOR UPDATE),
deferred AS (
  UPDATE notifications_app_delivery delivery SET due_at = now() FROM waiting
  WHERE batch_id = waiting.id AND delivery.status = 0 AND due_at > now())
UPDATE notifications_app_batch batch SET due_at = now() FROM waiting WHERE batch.id = waiting.id
"""
_FALL_DUE = """
UPDATE notifications_app_notification
SET scheduled_at = now() + random() * make_interval(secs => %(seconds)s)
WHERE id = ANY(%(ids)s)
"""

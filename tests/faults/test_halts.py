"""Notifications that are paused, edited, resumed and stopped while real workers send them.

The sandboxes' receipts show what each device got.
"""

import os
import time
from collections import defaultdict

from tests.faults.exactness import (
    assert_exact,
    codes,
    got,
    notification_of,
    outcomes,
    text_of,
    wait_ended,
)
from tests.faults.processes import PLATFORMS, until
from tests.faults.support import (
    assert_called_once,
    audience,
    await_part,
    many,
    requests,
    standing_still_early,
    wait_at_random,
)

PROMISED = 10.0  # seconds after the answer in which calls may still begin


def slow_audience(channel, count):
    for _, device in audience(channel, count):
        device.behave("slow", seconds=0.2)


def change(channel, notification, act):
    """The time of its answer 200."""
    assert channel.change(notification, act) == 200
    return time.time()


def halted_early(channel, act):
    """A notification that is paused or stopped at one of its first calls, and when."""
    slow_audience(channel, many(250))
    with standing_still_early(channel, PLATFORMS) as wait_until_called:
        notification = channel.send(*PLATFORMS)
        wait_until_called()
        return notification, change(channel, notification, act)


def received_at(channel):
    """The times at which the requests came, in order."""
    return sorted(
        receipt.at for device in channel.devices.values() for receipt in list(device.receipts)
    )


def is_idle(channel):
    return not channel.system.value(
        "SELECT count(*) FROM notifications_app_batch WHERE channel_id = %s AND status = 'leased'",
        [channel.id],
    )


def test_no_call_begins_during_a_pause_and_everybody_is_called_afterwards(system, channel):
    notification, paused_at = halted_early(channel, "pause")
    until(lambda: is_idle(channel), "the workers have learned it")
    before = requests(channel)
    time.sleep(PROMISED + 2)
    assert requests(channel) == before < len(channel.devices)
    assert received_at(channel)[-1] < paused_at + PROMISED

    resumed_at = time.time()  # calls may begin before the answer
    change(channel, notification, "resume")

    assert_exact(channel, [notification])
    assert codes(channel, notification) == {"": len(channel.devices)}
    calls = received_at(channel)
    assert not [at for at in calls if paused_at + PROMISED < at < resumed_at]
    _print_lag(calls[:before], paused_at)


def test_a_notification_that_is_stopped_reaches_nobody_else(system, channel):
    notification, stopped_at = halted_early(channel, "stop")

    assert_exact(channel, [notification])

    ended = codes(channel, notification)
    had_it = ended[""]
    assert ended == {"": had_it, "stopped": ended["stopped"]}
    assert ended["stopped"] > 0
    calls = received_at(channel)
    assert calls[-1] < stopped_at + PROMISED
    assert_called_once(channel, had_it)
    print(f"{had_it} had it, {ended['stopped']} did not")  # noqa: T201 (a figure)
    _print_lag(calls, stopped_at)


def test_a_notification_that_is_stopped_before_its_workers_run_reaches_nobody(system, channel):
    audience(channel, many(30))
    for platform in PLATFORMS:
        system.pause(f"worker-{platform}")
    notification = channel.send(*PLATFORMS)
    planned = len(channel.devices)
    until(lambda: channel.read(notification)["recipient_count"] == planned, "it is planned")
    change(channel, notification, "stop")
    for platform in PLATFORMS:
        system.wake(f"worker-{platform}")

    assert_exact(channel, [notification])

    assert codes(channel, notification) == {"stopped": planned}
    assert got(channel)[notification] == {}


def test_pauses_stops_edits_kills_and_new_credentials_in_any_order_leave_everything_exact(
    system, channel
):
    slow_audience(channel, many(150))
    notifications, told = [], Told()
    for number in range(1, 1 + (50 if os.environ.get("FAULTS_LONG") else 3)):
        before = requests(channel)
        notifications.append(channel.send(*PLATFORMS))
        await_part(channel, system.random.uniform(0.0, 0.3), since=before + 1)
        for act in system.random.choices(ACTS, k=4):
            notification = system.random.choice(notifications[-_AT_ONCE:])
            print(f"after {requests(channel)} requests: {act.__name__}", flush=True)  # noqa: T201
            act(system, channel, notification, told)
            wait_at_random(system, 0.5)
        if number % _AT_ONCE == 0:
            _end(system, channel, notifications[-_AT_ONCE:])
    _end(system, channel, notifications[-_AT_ONCE:])

    assert_exact(channel, notifications)

    for notification in notifications:
        rows = outcomes(channel, notification).values()
        assert {code for _, code, *_ in rows} <= {"", "stopped"}
        assert notification in told.stopped or {code for _, code, *_ in rows} == {""}
    received = got(channel)
    for notification, at in told.stopped.items():
        times = [each for times in received[notification].values() for each in times]
        assert not [each for each in times if each > at + PROMISED + 0.2]
    _assert_texts_are_those_of_the_last_edit(channel, notifications, told)


_AT_ONCE = 10  # or hundreds of rounds would leave more paused than devices take within the limit


def _end(system, channel, notifications):
    for notification in notifications:
        assert channel.change(notification, "resume") == 200
    system.run_all()
    wait_ended(channel, notifications)


class Told:
    """What was answered: since when a notification is stopped, and its texts, each from the moment
    at which its edit was asked for and answered."""

    def __init__(self):
        self.stopped = {}
        self.texts = defaultdict(list)


def _assert_texts_are_those_of_the_last_edit(channel, notifications, told):
    """An edit is only answered while no worker holds a batch."""
    for device in channel.devices.values():
        for receipt in list(device.receipts):
            edits = told.texts[notification_of(receipt)]
            known = {text for text, asked, _ in edits if asked < receipt.at}
            assert text_of(receipt) in known | {"Fresh bread"}
            answered = [text for text, _, at in edits if at < receipt.at]
            if answered:
                assert text_of(receipt) in texts_from(edits, answered[-1])
    edited = sum(len(told.texts[notification]) for notification in notifications)
    print(f"{edited} edits were answered")  # noqa: T201 (a figure)


def texts_from(edits, text):
    """This one and later ones."""
    texts = [each for each, _, _ in edits]
    return texts[texts.index(text) :]


def pause(_system, channel, notification, _told):
    assert channel.change(notification, "pause") in (200, 409)


def edit(_system, channel, notification, told):
    """Of what is paused, once the workers have learned it. What has ended meanwhile is refused."""
    channel.change(notification, "pause")
    text, asked = f"Edit {len(told.texts[notification])}", time.time()
    answers = []

    def is_answered():
        answers.append(channel.edit(notification, body=text))
        return answers[-1] == 200 or not is_running(channel, notification)

    until(is_answered, "no worker holds a batch")
    assert set(answers) <= {200, 409}
    if answers[-1] == 200:
        told.texts[notification].append((text, asked, time.time()))


def is_running(channel, notification):
    return channel.read(notification)["status"] in ("pending", "processing")


def resume(_system, channel, notification, _told):
    assert channel.change(notification, "resume") == 200


def stop(_system, channel, notification, told):
    if channel.change(notification, "stop") == 200:
        told.stopped.setdefault(notification, time.time())


def kill_a_worker(system, _channel, _notification, _told):
    platform = system.random.choice(PLATFORMS)
    system.kill(f"worker-{platform}")
    until(lambda: system.are_sandboxes_left(platform), "what the dead sent last is read")
    system.end_leases(platform)
    system.run_all()


def kill_the_planner(system, _channel, _notification, _told):
    system.kill("worker-plan")
    system.end_plan_leases()
    system.run_all()


def replace_credentials(_system, channel, _notification, _told):
    channel.store_google()
    channel.store_apple()


ACTS = [pause, edit, edit, resume, stop, kill_a_worker, kill_the_planner, replace_credentials]


def _print_lag(calls, answered_at):
    after = [at for at in calls if at > answered_at]
    last = after[-1] - answered_at if after else 0.0
    print(f"{len(after)} calls after the answer, the last {last:.2f} s after it")  # noqa: T201

"""Notifications that are paused, resumed and stopped while real workers send them.

The sandboxes' receipts show what each device got.
"""

import os
import time

from tests.faults.exactness import assert_exact, codes, got, outcomes
from tests.faults.support import audience, await_part, many, requests, wait_at_random
from tests.faults.system import PLATFORMS, until

PROMISED = 10.0  # seconds after the answer in which calls may still begin


def slow_audience(channel, count):
    for _, device in audience(channel, count):
        device.behave("slow", seconds=0.2)


def change(channel, notification, act):
    """The time of its answer 200."""
    assert channel.change(notification, act) == 200
    return time.time()


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
    slow_audience(channel, many(250))
    notification = channel.send(*PLATFORMS)
    await_part(channel, system.random.uniform(0.1, 0.3))
    paused_at = change(channel, notification, "pause")
    until(lambda: is_idle(channel), "the workers have learned it")
    before = requests(channel)
    time.sleep(PROMISED + 2)
    assert requests(channel) == before < len(channel.devices)
    assert received_at(channel)[-1] < paused_at + PROMISED

    resumed_at = change(channel, notification, "resume")

    assert_exact(channel, [notification])
    assert codes(channel, notification) == {"": len(channel.devices)}
    calls = received_at(channel)
    assert not [at for at in calls if paused_at + PROMISED < at < resumed_at]
    _print_lag(calls[:before], paused_at)


def test_a_notification_that_is_stopped_reaches_nobody_else(system, channel):
    slow_audience(channel, many(250))
    notification = channel.send(*PLATFORMS)
    await_part(channel, system.random.uniform(0.1, 0.4))
    stopped_at = change(channel, notification, "stop")

    assert_exact(channel, [notification])

    ended = codes(channel, notification)
    had_it = len(got(channel)[notification])
    assert ended == {"": had_it, "stopped": ended["stopped"]}
    assert ended["stopped"] > 0
    calls = received_at(channel)
    assert calls[-1] < stopped_at + PROMISED
    assert len(calls) == had_it
    print(f"{had_it} had it, {ended['stopped']} did not")  # noqa: T201 (a figure)
    _print_lag(calls, stopped_at)


def test_pauses_stops_kills_and_new_credentials_in_any_order_leave_everything_exact(
    system, channel
):
    slow_audience(channel, many(150))
    notifications, stopped = [], {}
    for _ in range(int(os.environ.get("FAULTS_ROUNDS", "3"))):
        before = requests(channel)
        notifications.append(channel.send(*PLATFORMS))
        await_part(channel, system.random.uniform(0.0, 0.3), since=before + 1)
        for act in system.random.choices(ACTS, k=4):
            notification = system.random.choice(notifications)
            print(f"after {requests(channel)} requests: {act.__name__}", flush=True)  # noqa: T201
            act(system, channel, notification, stopped)
            wait_at_random(system, 0.5)
    for notification in notifications:
        assert channel.change(notification, "resume") == 200
    system.run_all()

    assert_exact(channel, notifications)

    for notification in notifications:
        rows = outcomes(channel, notification).values()
        assert {code for _, code, *_ in rows} <= {"", "stopped"}
        assert notification in stopped or {code for _, code, *_ in rows} == {""}
    for notification, at in stopped.items():
        times = [each for times in got(channel)[notification].values() for each in times]
        assert not [each for each in times if each > at + PROMISED + 0.2]


def pause(_system, channel, notification, _stopped):
    assert channel.change(notification, "pause") in (200, 409)


def resume(_system, channel, notification, _stopped):
    assert channel.change(notification, "resume") == 200


def stop(_system, channel, notification, stopped):
    if channel.change(notification, "stop") == 200:
        stopped.setdefault(notification, time.time())


def kill_a_worker(system, _channel, _notification, _stopped):
    platform = system.random.choice(PLATFORMS)
    system.kill(f"worker-{platform}")
    system.end_leases(platform)
    system.run_all()


def kill_the_planner(system, _channel, _notification, _stopped):
    system.kill("worker-plan")
    system.end_plan_leases()
    system.run_all()


def replace_credentials(_system, channel, _notification, _stopped):
    channel.store_google()
    channel.store_apple()


ACTS = [pause, pause, resume, stop, kill_a_worker, kill_the_planner, replace_credentials]


def _print_lag(calls, answered_at):
    after = [at for at in calls if at > answered_at]
    last = after[-1] - answered_at if after else 0.0
    print(f"{len(after)} calls after the answer, the last {last:.2f} s after it")  # noqa: T201

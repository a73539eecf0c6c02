"""Processes that are told to stop."""

import signal

import psutil

from tests.faults.exactness import assert_exact, stored
from tests.faults.processes import EVERYTHING, PLATFORMS, until
from tests.faults.support import (
    assert_called_once,
    audience,
    await_part,
    each_in_the_middle,
    many,
    requests,
    under_load,
)


def test_a_deploy_under_load_loses_and_doubles_nothing(system, channel):
    with under_load(channel) as notifications:
        for name in system.random.sample(EVERYTHING, len(EVERYTHING)):
            await_part(channel, 0.5, since=requests(channel))
            system.replace(name)
    assert_exact(channel, notifications)
    assert stored(channel) == set(notifications)
    assert_called_once(channel, len(notifications) * len(channel.devices))


def test_workers_that_are_told_to_stop_hand_back_unsent_recipients(system, channel):
    pairs = audience(channel, many(200))
    for _, device in pairs:
        device.behave("slow", seconds=0.5)

    stopping = []
    with each_in_the_middle(
        channel, PLATFORMS, lambda of: stopping.append(system.begin_to_stop(f"worker-{of}"))
    ):
        notification = channel.send(*PLATFORMS)

    assert system.exit_codes(stopping) == [0] * len(PLATFORMS)
    assert system.value(_NOT_HANDED_BACK, [notification]) == 0
    assert 0 < requests(channel) < len(pairs)
    system.run_all()
    assert_exact(channel, [notification])
    assert_called_once(channel, len(pairs))


def test_a_beat_that_waits_for_the_database_ends_when_it_is_told_to(system):
    _await_ticks(system, 3)  # then it has something to save
    with system.connect() as connection:
        connection.execute("LOCK django_celery_beat_periodictasks")
        until(lambda: system.value(_BEAT_WAITS), "beat waits for the lock")
        (beat,) = system.alive("beat")
        beat.send_signal(signal.SIGTERM)
        told = _times_it_slept(beat)
        until(lambda: _times_it_slept(beat) > told + 1, "it handled the signal and waits again")
    assert system.exit_codes([beat]) == [0]


def _await_ticks(system, count):
    for _ in range(count):
        system.redis.delete("pushsvc:ticked")
        until(lambda: system.redis.exists("pushsvc:ticked"), "beat ticks")


def _times_it_slept(process):
    return psutil.Process(process.pid).num_ctx_switches().voluntary


_BEAT_WAITS = """
SELECT EXISTS (SELECT FROM pg_locks
               WHERE NOT granted AND relation = 'django_celery_beat_periodictasks'::regclass)
"""
_NOT_HANDED_BACK = """
SELECT count(*) FROM notifications_app_batch
WHERE notification_id = %s AND (status = 'leased' OR lease_losses > 0)
"""

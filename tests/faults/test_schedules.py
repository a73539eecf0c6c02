"""Schedules: beats too many and too few, and cancels at the last moment."""

import time
from datetime import UTC

from tests.faults.exactness import assert_exact, wait_ended
from tests.faults.support import audience, lasting, many, requests, wait_at_random
from tests.faults.system import PLATFORMS, until


def test_two_beats_at_once_start_nothing_twice(system, channel):
    audience(channel, many(100))
    system.start("beat")
    until(system.do_beats_tick, "both tick")
    notifications = [channel.send(*PLATFORMS, scheduled_at=_in(system, 1.5)) for _ in range(3)]
    assert_exact(channel, notifications)
    assert len(system.alive("beat")) == 2


def test_what_falls_due_while_beat_is_away_goes_out_when_it_is_back(system, channel):
    """A minute in `make soak`, five seconds in `make test`."""
    audience(channel, many(100))
    system.kill("beat")
    notification = channel.send(*PLATFORMS, scheduled_at=_in(system, 1))
    time.sleep(lasting(5, 60))
    assert channel.read(notification)["status"] == "pending"
    system.run_all()
    assert_exact(channel, [notification])


def test_a_cancel_that_races_with_the_tick_wins_or_loses_and_never_both(system, channel):
    channel.subscribe(many(20))
    later = _in(system, 3600)
    notifications = [channel.send(scheduled_at=later) for _ in range(many(30))]
    answers = {}
    system.rows(_FALL_DUE, {"ids": notifications, "seconds": many(2)})
    for notification in system.random.sample(notifications, many(30)):
        answers[notification] = channel.cancel(notification)
        wait_at_random(system, 0.1)

    assert set(answers.values()) <= {200, 409}
    sent = [each for each in notifications if answers[each] == 409]
    wait_ended(channel, sent)
    assert_exact(channel, sent)
    assert requests(channel) == len(sent) * len(channel.devices)
    for notification in set(notifications) - set(sent):
        assert channel.read(notification)["status"] == "cancelled"
    print(f"{len(sent)} of {len(notifications)} were too late to cancel")  # noqa: T201 (a figure)


def _in(system, seconds):
    moment = system.value("SELECT now() + make_interval(secs => %s)", [seconds])
    return moment.astimezone(UTC).isoformat()


# One after another while they are cancelled: to accept them all may take longer than that.
_FALL_DUE = """
UPDATE notifications_app_notification
SET scheduled_at = now() + random() * make_interval(secs => %(seconds)s)
WHERE id = ANY(%(ids)s)
"""

"""Scheduled sends: two beats, no beat, and cancels at the last moment."""

import time

import pytest

from tests.faults import broker
from tests.faults.exactness import assert_exact, wait_ended
from tests.faults.processes import PLATFORMS, until
from tests.faults.support import (
    assert_called_once,
    audience,
    fall_due,
    lasting,
    many,
    send_later,
    wait_at_random,
)


@pytest.fixture
def two_beats(system):
    """None is left for the next test, which may want a single one."""
    system.start("beat")
    until(system.do_beats_tick, "both tick")
    yield
    system.kill("beat")


@pytest.mark.usefixtures("two_beats")
def test_two_beats_start_no_notification_twice(system, channel):
    audience(channel, many(100))
    notifications = [send_later(channel, *PLATFORMS) for _ in range(3)]
    fall_due(system, notifications, seconds=1.5)
    assert_exact(channel, notifications)
    assert len(system.alive("beat")) == 2


def test_a_notification_due_while_beat_is_stopped_is_sent_when_it_is_back(system, channel):
    """A minute in `make soak`, five seconds in `make test`."""
    audience(channel, many(100))
    notification = send_later(channel, *PLATFORMS)
    system.kill("beat")
    _hear_the_last_tick(system)
    fall_due(system, [notification], seconds=0)
    time.sleep(lasting(5, 60))
    assert channel.read(notification)["status"] == "pending"
    system.run_all()
    assert_exact(channel, [notification])


def test_a_cancel_at_the_moment_of_the_tick_either_wins_or_loses(system, channel):
    channel.subscribe(many(20))
    notifications = [send_later(channel) for _ in range(many(30))]
    answers = {}
    # One after another while they are cancelled: accepting them all may take longer than that.
    fall_due(system, notifications, seconds=many(2))
    for notification in system.random.sample(notifications, many(30)):
        answers[notification] = channel.cancel(notification)
        wait_at_random(system, 0.1)

    assert set(answers.values()) <= {200, 409}
    sent = [each for each in notifications if answers[each] == 409]
    wait_ended(channel, sent)
    assert_exact(channel, sent)
    assert_called_once(channel, len(sent) * len(channel.devices))
    for notification in set(notifications) - set(sent):
        assert channel.read(notification)["status"] == "cancelled"
    print(f"{len(sent)} of {len(notifications)} were too late to cancel")  # noqa: T201 (a figure)


def _hear_the_last_tick(system):
    """Lets the planner finish its tick, as it does when it is told to stop, and deletes the ticks
    that still wait. On return the planner works again."""
    assert system.tell_to_stop("worker-plan") == [0]
    broker.purge(system, "tick")
    system.start("worker-plan")
    until(system.do_workers_hear, "the planner hears")

"""The broker loses, doubles and delays messages. They only wake workers up, so nothing is lost."""

import pytest

from tests.faults import broker
from tests.faults.engines.engine import asked
from tests.faults.exactness import assert_exact
from tests.faults.processes import EVERYTHING, PLATFORMS, WORKERS, until
from tests.faults.support import (
    audience,
    await_part,
    is_planned,
    lasting,
    many,
    meanwhile,
    wait_at_random,
)


def test_a_broker_that_is_emptied_and_killed_repeatedly_loses_nothing(system, channel):
    audience(channel, many(300))
    notifications = [channel.send(*PLATFORMS)]
    for act in (broker.empty, broker.kill, broker.empty):
        wait_at_random(system, 1.0)
        act(system)
        notifications.append(channel.send(*PLATFORMS))
    assert set(system.tell_to_stop(*WORKERS)) == {0}
    notifications.append(channel.send(*PLATFORMS))
    broker.empty(system)  # no planner has been woken up for the last one
    system.start("worker-plan")
    until(lambda: is_planned(channel, notifications[-1]), "it is planned")
    until(
        lambda: all(broker.is_rung(system, each) for each in PLATFORMS), "its batches are rung for"
    )
    broker.empty(system)  # and no worker for its batches
    system.run_all()
    assert_exact(channel, notifications)


def test_sends_accepted_while_the_broker_is_away_are_sent_when_it_is_back(system, channel):
    audience(channel, many(300))
    notifications = [channel.send(*PLATFORMS)]
    await_part(channel, system.random.uniform(0.0, 0.5))
    with meanwhile(lambda: broker.silence(system, lasting(4, 30)), times=1):
        notifications.append(channel.send(*PLATFORMS))
    with meanwhile(lambda: broker.slow_down(system, lasting(3, 30)), times=1):
        notifications.append(channel.send(*PLATFORMS))
    assert_exact(channel, notifications)


def test_doubled_late_and_reordered_messages_change_nothing(system, channel):
    audience(channel, many(300))
    held = {}
    with meanwhile(lambda: broker.meddle(system, held)):
        notifications = [channel.send(*PLATFORMS) for _ in range(3)]
        await_part(channel, 2.5)
    assert_exact(channel, notifications)


_ON_REDIS = pytest.mark.skipif("rabbitmq" in asked(), reason="RabbitMQ has no such state")


@_ON_REDIS
def test_messages_of_another_program_end_no_worker(system, channel):
    audience(channel, many(30))
    before = {name: system.alive(name) for name in EVERYTHING}
    try:
        for queue in broker.QUEUES:
            system.redis.rpush(queue, "text", "7", "{}", "[" * 10_000)
        notification = channel.send(*PLATFORMS)
        assert_exact(channel, [notification])
    finally:
        system.redis.delete(*broker.QUEUES)
    assert {name: system.alive(name) for name in EVERYTHING} == before
    assert len(system.logged("wakeup.unreadable")) >= len(WORKERS)


@_ON_REDIS
def test_the_same_processes_go_on_after_their_redis_was_a_replica(system, channel):
    """A supervisor would restart them late: after minutes if it has restarted them before."""
    audience(channel, many(30))
    before = {name: system.alive(name) for name in EVERYTHING}
    with broker.as_replica(system) as are_refused:
        notification = channel.send(*PLATFORMS)
        until(are_refused, "Redis has refused the workers")
    assert_exact(channel, [notification])
    assert {name: system.alive(name) for name in EVERYTHING} == before

"""Faults of the broker and of the messages in it."""

import signal
import time

from tests.faults.support import wait_at_random

QUEUES = ("tick", "plan", "web", "android", "ios")


def empty(system):
    system.redis.flushall()


def kill(system):
    """Redis comes back after a moment, empty."""
    system.kill_redis()
    wait_at_random(system, 2.0)
    system.revive_servers()


def silence(system, seconds):
    """The broker accepts connections and answers nothing."""
    system.signal_redis(signal.SIGSTOP)
    time.sleep(seconds)
    system.signal_redis(signal.SIGCONT)


def slow_down(system, seconds):
    """The broker answers only for a moment now and then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        silence(system, system.random.uniform(0.1, 0.4))
        time.sleep(0.02)


def meddle(system, held):
    """Once over all queues: some messages are doubled, some are taken away, some that were taken
    away earlier are put back, all in another order. `held`: the messages taken away, by queue."""
    for queue in QUEUES:
        waiting = system.redis.lrange(queue, 0, -1) if system.redis.exists(queue) else []
        for message in waiting:
            system.redis.lrem(queue, 1, message)
        late = held.setdefault(queue, [])
        back = [late.pop() for _ in range(len(late) // 2)]
        doubled = [message for message in waiting if system.random.random() < 0.5]
        messages = waiting + doubled + back
        system.random.shuffle(messages)
        for message in messages:
            if system.random.random() < 0.3:
                late.append(message)
            else:
                system.redis.lpush(queue, message)
    time.sleep(0.02)

"""Faults of the broker and of the messages in it, and of Redis, which holds limits."""

import signal
import time
from contextlib import contextmanager

from kombu import Connection, Producer
from kombu.exceptions import ChannelError

from tests.faults.support import wait_at_random

QUEUES = ("tick", "plan", "web", "android", "ios", "hooks")
_SENT_AGAIN = ("correlation_id", "reply_to", "delivery_mode", "priority")


def empty(system):
    system.redis.flushall()
    purge(system, *QUEUES)


def purge(system, *queues):
    """Deletes the messages that wait in these queues."""
    with _channel(system) as channel:
        for queue in queues:
            _take(channel, queue)


def is_rung(system, queue):
    """Whether a message waits in the queue."""
    with _channel(system) as channel:
        try:
            return channel.queue_declare(queue, passive=True).message_count > 0
        except ChannelError:  # there is no such queue yet
            return False


def kill(system):
    """It comes back after a moment, Redis empty."""
    system.kill_brokers()
    wait_at_random(system, 2.0)
    system.revive_servers()


def silence(system, seconds):
    """The broker accepts connections and answers nothing."""
    system.signal_brokers(signal.SIGSTOP)
    time.sleep(seconds)
    system.signal_brokers(signal.SIGCONT)


@contextmanager
def as_replica(system):
    """In the block, Redis refuses writes, and taking a message is one. Yields a function: whether
    it has refused all workers, which close the connections that they had before."""
    waiting = _waiting_for_messages(system)
    system.redis.replicaof("127.0.0.1", "1")
    try:
        yield lambda: not waiting & _waiting_for_messages(system)
    finally:
        system.redis.replicaof("NO", "ONE")


def _waiting_for_messages(system):
    clients = system.redis.client_list()
    return {client["id"] for client in clients if client["cmd"] == "brpop"}


def slow_down(system, seconds):
    """The broker answers only for a moment now and then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        silence(system, system.random.uniform(0.1, 0.4))
        time.sleep(0.02)


def meddle(system, held):
    """Once over all queues: some messages are doubled, some are taken away, some that were taken
    away earlier are put back, all in another order. `held`: the messages taken away, by queue."""
    with _channel(system) as channel:
        for queue in QUEUES:
            _meddle_with(channel, queue, held.setdefault(queue, []), system.random)
    time.sleep(0.02)


def _meddle_with(channel, queue, late, chance):
    waiting = _take(channel, queue)
    back = [late.pop() for _ in range(len(late) // 2)]
    doubled = [message for message in waiting if chance.random() < 0.5]
    messages = waiting + doubled + back
    chance.shuffle(messages)
    for message in messages:
        if chance.random() < 0.3:
            late.append(message)
        else:
            _put(channel, queue, message)


@contextmanager
def _channel(system):
    with Connection(system.engine.broker.url) as connection:
        yield connection.channel()


def _take(channel, queue):
    taken = []
    try:
        while message := channel.basic_get(queue, no_ack=True):
            taken.append(message)
    except ChannelError:  # there is no such queue yet
        pass
    return taken


def _put(channel, queue, message):
    Producer(channel).publish(
        message.body,
        exchange="",
        routing_key=queue,
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        headers=message.headers,
        **{name: message.properties.get(name) for name in _SENT_AGAIN},
    )

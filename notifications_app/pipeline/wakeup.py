"""Sends wakeups, which notify the workers of a queue that there may be work. If a wakeup is lost,
the work waits for the next tick, at most about a second.

Sending never raises and takes at most about a second, because the sender has already committed. The
headers of a wakeup contain the sender's correlation.
"""

import functools
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import structlog
from celery import current_app
from kombu import Connection, pools
from kombu.exceptions import ChannelError
from kombu.transport import redis
from typing_extensions import override

from pushsvc.common import correlation
from pushsvc.common.platforms import Platform

logger = structlog.stdlib.get_logger(__name__)

MOST_WAITING = 16  # wakeups in a queue; a worker that gets one works until nothing is left
_SILENCE_SECONDS = 1.0  # after a broker that did not respond

# Other queues belong to platforms.
_TASKS: Final[Mapping[str, tuple[str, list[str]]]] = {
    "plan": ("plan", []),
    "hooks": ("send_webhooks", []),
}

_silent_until = 0.0


def wake(queue: str, count: int = 1, *, after: float | None = None) -> None:
    """Sends up to `count` wakeups, but only until MOST_WAITING are in the queue. Never raises.

    `after`: for how many seconds the worker that gets one keeps it. Use it for a second or two
    only.
    """
    task, arguments = _TASKS.get(queue, ("deliver", [queue]))
    _send(task, arguments, queue, count, after)


def request_credential_checks(platform: Platform) -> None:
    """Tells the platform's worker to check new credentials and try paused ones. Never raises."""
    _send("check_credentials", [platform], platform, 1, None)


def request_mails() -> None:
    """Tells a planner's worker to send the mails of the console that are due. Never raises."""
    _send("send_mails", [], "plan", 1, None)


def request_firing() -> None:
    """Tells a planner's worker that occurrences of schedules are due. Never raises."""
    _send("fire", [], "plan", 1, None)


def _send(task: str, arguments: list[str], queue: str, count: int, after: float | None) -> None:
    global _silent_until
    if time.monotonic() < _silent_until:
        return
    try:
        _publish(task, arguments, queue, count, after)
    except Exception as error:  # noqa: BLE001 (each broker has errors of its own, not all wrapped)
        _silent_until = time.monotonic() + _SILENCE_SECONDS
        logger.warning("wakeup.failed", queue=queue, error=type(error).__name__)


class _BrokerChannel(redis.Channel):
    """Keeps one Redis client, where kombu creates one for each command."""

    @override
    @contextmanager
    def conn_or_acquire(self, client: Any = None) -> Iterator[Any]:
        yield client or self._kept_client

    @override
    def _has_queue(self, queue: str, **_: Any) -> bool:
        return True  # Redis has no empty lists; `_size` returns 0 for a missing one

    @override
    def _size(self, queue: str) -> int:
        return int(self._kept_client.llen(queue))  # without priorities there is one list

    @functools.cached_property
    def _kept_client(self) -> Any:
        return self._create_client()  # type: ignore[attr-defined]  # kombu's, and not in its stubs


class _BrokerTransport(redis.Transport):
    Channel = _BrokerChannel


def _publish(task: str, arguments: list[str], queue: str, count: int, after: float | None) -> None:
    with pools.producers[_connection(os.getpid())].acquire(block=True, timeout=1) as producer:
        headers = correlation.current().headers
        free = MOST_WAITING - _waiting(producer.channel, queue)
        for _ in range(min(count, free)):
            current_app.send_task(
                f"notifications_app.tasks.{task}",
                arguments,
                queue=queue,
                producer=producer,
                retry=False,
                countdown=after,
                headers=headers,
            )


def _waiting(channel: Any, queue: str) -> int:
    try:
        return int(channel.queue_declare(queue=queue, passive=True).message_count)
    except ChannelError:  # there is no such queue yet
        return 0


@functools.cache
def _connection(_pid: int) -> Connection:
    # The first two names are Redis's, the next two RabbitMQ's. Each ignores the other's.
    quick = {
        "socket_timeout": 0.5,
        "socket_connect_timeout": 0.5,
        "read_timeout": 0.5,
        "write_timeout": 0.5,
        "max_retries": 0,
    }
    connection = current_app.connection_for_write(connect_timeout=1, transport_options=quick)
    if connection.get_transport_cls() is redis.Transport:
        connection.transport_cls = f"{__name__}:{_BrokerTransport.__name__}"
    return connection

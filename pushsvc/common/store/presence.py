"""Shows other processes that this one lives, by a connection to Redis on which nothing is sent.

The kernel closes the connections of a killed process, and keeps those of a paused one. If a machine
vanishes, Redis closes its connections after some keepalive probes, but not those on which it had
sent a response: the kernel repeats the response for 15 minutes (tcp_retries2 in tcp(7)), and sends
no probes meanwhile. So this connection never waits for a response.
"""

import os
import time
from collections.abc import Set
from contextlib import suppress
from functools import lru_cache, partial
from threading import Lock, Thread
from typing import Any, Final
from uuid import UUID, uuid4

import redis
from django.conf import settings

from pushsvc.common.store.redis_client import redis_client, unshared_connection

_LOOK_SECONDS: Final = 2.0


def process_id() -> UUID:
    """The id of this process, which is part of the name of its silent connection."""
    return _process_id(os.getpid())


def start() -> None:
    """Opens the connection, and again whenever it is closed. Call it once in a process, after the
    fork."""
    Thread(target=_stay_for_ever, name="presence", daemon=True).start()


def disconnected(processes: Set[UUID]) -> set[UUID]:
    """The processes whose silent connection is closed. Empty if Redis does not tell, or is behind a
    proxy."""
    try:
        names = _connected_names()
    except redis.RedisError:
        return set()
    return {each for each in processes if _name(each) not in names} if names else set()


def tells_connections() -> bool:
    """Whether Redis tells which processes are connected. Raises RedisError if it does not
    response."""
    return bool(_connected_names())


class _SilentConnection:
    """Threads may share it.

    It is opened anew after this process could not reach Redis, because another server may have the
    address since. The former connection is closed afterwards, so the process is never missing.
    """

    def __init__(self, url: str, process: UUID) -> None:
        self._url = url
        self._greet = partial(_greet, _name(process))
        self._lock = Lock()
        self._connection: Any = None
        self._failures = 0

    def stay(self) -> None:
        """Opens the connection if it is closed. Raises RedisError if that is impossible."""
        client = redis_client()
        with self._lock:
            if client.is_away:
                raise redis.ConnectionError("Redis was away a moment ago")
            failures = client.failures
            if failures == self._failures and self._is_open():
                return
            opened = unshared_connection(self._url, self._greet)
            opened.connect()
            former, self._connection, self._failures = self._connection, opened, failures
            if former:
                former.disconnect()

    def _is_open(self) -> bool:
        try:
            return self._connection is not None and not self._connection.can_read()
        except redis.RedisError:
            return False


def _stay_for_ever() -> None:
    while True:
        with suppress(redis.RedisError):
            _connection().stay()
        time.sleep(_LOOK_SECONDS)


def _connected_names() -> set[str]:
    """Empty if this process is not among them. Raises RedisError if Redis does not respond."""
    _connection().stay()
    try:
        names = {each["name"] for each in redis_client().client_list()}
    except redis.ResponseError:
        return set()
    return names if _name(process_id()) in names else set()


def _connection() -> _SilentConnection:
    return _silent_connection(settings.REDIS_URL, process_id())


@lru_cache(maxsize=4)
def _silent_connection(url: str, process: UUID) -> _SilentConnection:
    return _SilentConnection(url, process)


@lru_cache(maxsize=1)
def _process_id(_pid: int) -> UUID:
    return uuid4()


def _name(process: UUID) -> str:
    return f"pushsvc:{process}"


def _greet(name: str, connection: Any) -> None:
    """Names a new connection. Redis's access rules may forbid this; if redis-py set the name, it
    would then refuse the connection."""
    connection.on_connect()
    connection.send_command("CLIENT", "SETNAME", name)
    with suppress(redis.ResponseError):
        connection.read_response()

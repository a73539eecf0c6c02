"""The Redis client of a process, and its behaviour while Redis is away.

Redis contains only data that may be lost: limits, breakers, used invitations. All callers catch
`redis.RedisError` and continue without it; only invitations are refused. After a failure, this
process does not connect again for two seconds. So while Redis is away, requests wait for at most
one timeout in two seconds.
"""

import os
import time
from collections.abc import Set
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any
from uuid import UUID, uuid4

import redis
import structlog
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry
from typing_extensions import override

TIMEOUT_SECONDS = 0.25
BACK_OFF_SECONDS = 2.0

logger = structlog.stdlib.get_logger(__name__)


class BackingOffRedis(redis.Redis):
    """Raises ConnectionError at once for a while after Redis could not be reached."""

    _away_until = 0.0  # on this process's monotonic clock

    @override
    def execute_command(self, *args: Any, **options: Any) -> Any:
        self._refuse_while_away()
        try:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except (redis.ConnectionError, redis.TimeoutError) as error:
            self._back_off(error)
            raise

    @override
    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        self._refuse_while_away()
        return super().pipeline(transaction, shard_hint)

    def connect(self, pool: redis.ConnectionPool) -> None:
        """Connects the pool if it has no connection, or one that was closed."""
        self._refuse_while_away()
        try:
            pool.release(pool.get_connection())
        except (redis.ConnectionError, redis.TimeoutError) as error:
            self._back_off(error)
            raise

    def _refuse_while_away(self) -> None:
        if time.monotonic() < self._away_until:
            raise redis.ConnectionError("Redis was away a moment ago")

    def _back_off(self, error: Exception) -> None:
        self._away_until = time.monotonic() + BACK_OFF_SECONDS
        logger.warning("redis.away", kind=type(error).__name__)


def redis_client() -> BackingOffRedis:
    """The client, which returns text and waits at most a quarter second. Threads and forks may
    share it."""
    return _client(settings.REDIS_URL, process_id())


def process_id() -> UUID:
    """The id of this process. The name of one of its connections to Redis contains it."""
    return _process_id(os.getpid())


def stay_connected() -> None:
    """Opens the connection that shows to `disconnected` that this process lives, if there is none.
    Does nothing while Redis is away.

    Once it is open, nothing is sent on this connection. If a machine vanishes before it
    acknowledges an answer, the kernel of Redis sends the answer again for a quarter of an hour
    (tcp_retries2 in tcp(7)), and no keepalive probes, so Redis keeps the connection for as long.
    """
    with suppress(redis.RedisError):
        redis_client().connect(_named_pool(settings.REDIS_URL, process_id()))


def disconnected(processes: Set[UUID]) -> set[UUID]:
    """The processes whose connection (`stay_connected`) is closed. Empty if Redis does not tell, or
    is behind a proxy.

    The kernel closes the connections of a killed process, and keeps those of a paused one.
    """
    names = _connected_names()
    return {each for each in processes if _name(each) not in names} if names else set()


def tells_connections() -> bool:
    """Whether Redis answers, and tells which processes are connected."""
    return bool(_connected_names())


def _connected_names() -> set[str]:
    """Empty if this process is not among them."""
    stay_connected()
    try:
        names = {each["name"] for each in redis_client().client_list()}
    except redis.RedisError:
        return set()
    return names if _name(process_id()) in names else set()


def _name(process: UUID) -> str:
    return f"pushsvc:{process}"


@lru_cache(maxsize=1)
def _process_id(_pid: int) -> UUID:
    return uuid4()


def _greet(name: str, connection: Any) -> None:
    """Names a new connection. Redis's access rules may forbid this; if redis-py set the name, it
    would then refuse the connection."""
    connection.on_connect()
    connection.send_command("CLIENT", "SETNAME", name)
    with suppress(redis.ResponseError):
        connection.read_response()


@lru_cache(maxsize=4)
def _client(url: str, _process: UUID) -> BackingOffRedis:
    return BackingOffRedis(connection_pool=_pool(url))


@lru_cache(maxsize=4)
def _named_pool(url: str, process: UUID) -> redis.ConnectionPool:
    return _pool(url, redis_connect_func=partial(_greet, _name(process)))


def _pool(url: str, **options: Any) -> redis.ConnectionPool:
    return redis.ConnectionPool.from_url(
        url,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
        decode_responses=True,
        **options,
    )

"""The Redis client of a process, and its behaviour while Redis is away.

Redis contains only data that may be lost: limits, breakers, used invitations. All callers catch
`redis.RedisError` and continue without it; only invitations are refused. After a failure, this
process does not connect again for two seconds. So while Redis is away, requests wait for at most
one timeout in two seconds.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import redis
import structlog
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry
from typing_extensions import override

TIMEOUT_SECONDS = 0.25
BACK_OFF_SECONDS = 2.0
# Lua: `now` is the milliseconds by Redis's clock, because clocks of machines may differ.
CLOCK: Final = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
"""

logger = structlog.stdlib.get_logger(__name__)


class ScriptCall(NamedTuple):
    """A Lua script with its keys and arguments, as EVAL takes them."""

    text: str
    keys: Sequence[str]
    arguments: Sequence[str | int | float]


@dataclass(frozen=True)
class Script:
    """A Lua script. Its keys and arguments are local variables with these names.

    `script(name=value, ...)` is a call of it; `BackingOffRedis.run` makes it.
    """

    body: str
    keys: Sequence[str] = ()
    texts: Sequence[str] = ()
    numbers: Sequence[str] = ()

    def __call__(self, **values: str | int | float) -> ScriptCall:
        keys = [str(values[name]) for name in self.keys]
        return ScriptCall(self.text, keys, [values[name] for name in (*self.texts, *self.numbers)])

    @cached_property
    def text(self) -> str:
        values = [f"KEYS[{place}]" for place, _ in enumerate(self.keys, 1)]
        values += [f"ARGV[{place}]" for place, _ in enumerate(self.texts, 1)]
        begin = len(self.texts) + 1
        values += [f"tonumber(ARGV[{place}])" for place, _ in enumerate(self.numbers, begin)]
        names = (*self.keys, *self.texts, *self.numbers)
        locals_ = (f"local {name} = {value}" for name, value in zip(names, values, strict=True))
        return "\n".join([*locals_, self.body])


class BackingOffRedis(redis.Redis):
    """Raises ConnectionError at once for a while after Redis could not be reached.

    `failures`: how often it could not be reached, or was a replica.
    """

    failures = 0
    _away_until = 0.0  # on this process's monotonic clock

    @override
    def execute_command(self, *args: Any, **options: Any) -> Any:
        self._refuse_while_away()
        try:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except (redis.ConnectionError, redis.TimeoutError) as error:
            self._back_off(error)
            raise
        except redis.ResponseError as error:
            self.leave_if_replica(error)
            raise

    @override
    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        self._refuse_while_away()
        return super().pipeline(transaction, shard_hint)

    def run(self, *calls: ScriptCall) -> list[Any]:
        """Runs the scripts in one round trip. Returns their results."""
        pipeline = self.pipeline(transaction=False)
        for text, keys, arguments in calls:
            pipeline.eval(text, len(keys), *keys, *arguments)
        try:
            results: list[Any] = pipeline.execute()
        except (redis.ConnectionError, redis.TimeoutError) as error:
            self._back_off(error)
            raise
        except redis.ResponseError as error:
            self.leave_if_replica(error)
            raise
        return results

    def leave_if_replica(self, error: redis.RedisError) -> None:
        """Closes idle connections if the server became a replica, because it keeps them, and
        another one may have the address since. `error`: what the server responded."""
        # Redis 6 quotes the refusal of a script's command.
        if isinstance(error, redis.ReadOnlyError) or "-READONLY" in str(error):
            self.connection_pool.disconnect(inuse_connections=False)
            self.failures += 1

    @property
    def is_away(self) -> bool:
        """Whether Redis could not be reached a moment ago."""
        return time.monotonic() < self._away_until

    def _refuse_while_away(self) -> None:
        if self.is_away:
            raise redis.ConnectionError("Redis was away a moment ago")

    def _back_off(self, error: Exception) -> None:
        self._away_until = time.monotonic() + BACK_OFF_SECONDS
        self.failures += 1
        logger.warning("redis.away", kind=type(error).__name__)


def redis_client() -> BackingOffRedis:
    """The client, which returns text and waits at most a quarter second. Threads and forks may
    share it."""
    return _client(settings.REDIS_URL, os.getpid())


def try_to_write(client: redis.Redis) -> None:
    """Raises RedisError if Redis refuses writes: a replica, a full Redis, one that cannot save, or
    a user without the right. Nothing is written, because there is no such key."""
    client.set("pushsvc:none", "", xx=True)


def unshared_connection(url: str, greet: Callable[[Any], None]) -> Any:
    """A connection of redis-py that is not open yet. `greet(connection)` begins it. Redis sends
    nothing on it unasked."""
    return _pool(url, protocol=2, redis_connect_func=greet).make_connection()


@lru_cache(maxsize=4)
def _client(url: str, _pid: int) -> BackingOffRedis:
    return BackingOffRedis(connection_pool=_pool(url))


def _pool(url: str, **options: Any) -> redis.ConnectionPool:
    return redis.ConnectionPool.from_url(
        url,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
        decode_responses=True,
        **options,
    )

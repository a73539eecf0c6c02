"""Rate limits: `quota` requests in a window that begins with the first of them.

The count is exact across processes (one script in Redis). While Redis is away, there is no limit.
"""

import math
from dataclasses import dataclass

import redis
import structlog

from pushsvc.common.errors import TooManyRequests
from pushsvc.common.store.redis_client import redis_client

logger = structlog.stdlib.get_logger(__name__)

# KEYS: the counter. ARGV: quota, window in ms, cost. Returns the remaining requests (-1: refused),
# and the ms until the window ends.
_SCRIPT = """
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
local left = redis.call('PTTL', KEYS[1])
if count + ARGV[3] > tonumber(ARGV[1]) then
  if left < 0 then left = tonumber(ARGV[2]) end
  return {-1, left}
end
count = redis.call('INCRBY', KEYS[1], ARGV[3])
if left < 0 then
  left = tonumber(ARGV[2])
  redis.call('PEXPIRE', KEYS[1], left)
end
return {ARGV[1] - count, left}
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """`quota` requests in `seconds` for each `key`. The client sees `name`."""

    name: str
    key: str
    quota: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a limit after this request. `remaining` is -1 if the request is refused."""

    limit: Limit
    remaining: int
    reset_seconds: float

    @property
    def is_refused(self) -> bool:
        return self.remaining < 0

    @property
    def headers(self) -> dict[str, str]:
        """The headers of draft-ietf-httpapi-ratelimit-headers-11."""
        name, reset = self.limit.name, math.ceil(self.reset_seconds)
        return {
            "RateLimit-Policy": f'"{name}";q={self.limit.quota};w={self.limit.seconds}',
            "RateLimit": f'"{name}";r={max(0, self.remaining)};t={reset}',
        }


def take(limit: Limit, *, cost: int = 1) -> Standing | None:
    """Counts the request, as `cost` requests, unless that exceeds the limit. None while Redis is
    away; then the request is allowed."""
    values = (limit.quota, limit.seconds * 1000, cost)
    arguments = (f"limit:{limit.name}:{limit.key}", *map(str, values))
    try:
        remaining, reset = redis_client().eval(_SCRIPT, 1, *arguments)
    except (redis.ConnectionError, redis.TimeoutError):
        return None
    except redis.RedisError as error:
        logger.error("limit.failed", limit=limit.name, error=str(error))
        return None
    return Standing(limit, int(remaining), int(reset) / 1000)


def enforce(limit: Limit, *, cost: int = 1) -> Standing | None:
    """Like `take`. Raises TooManyRequests if the limit is reached."""
    standing = take(limit, cost=cost)
    if standing is not None and standing.is_refused:
        raise TooManyRequests(standing.reset_seconds, headers=standing.headers)
    return standing

"""How often something may happen: `limit` times in a window that its first time opens.

The count is exact over all processes (one script in Redis). While Redis is away, all is allowed.
"""

import logging

import redis

from pushsvc.common.errors import TooManyRequests
from pushsvc.common.redis_client import redis_client

logger = logging.getLogger(__name__)

# KEYS: the counter. ARGV: limit, window in ms, cost (0: look). Returns ms to wait; -1: allowed.
_SCRIPT = """
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
local left = redis.call('PTTL', KEYS[1])
if count >= tonumber(ARGV[1]) then
  if left < 0 then return tonumber(ARGV[2]) end
  return left
end
if tonumber(ARGV[3]) > 0 then
  redis.call('INCRBY', KEYS[1], ARGV[3])
  if left < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
end
return -1
"""


def take(name: str, key: str, limit: int, seconds: int) -> float | None:
    """Counts one more `name` of `key`. None: it is within the limit; else the seconds to wait."""
    return _ask(name, key, limit, seconds, cost=1)


def peek(name: str, key: str, limit: int, seconds: int) -> float | None:
    """What `take` would answer, without counting."""
    return _ask(name, key, limit, seconds, cost=0)


def enforce(name: str, key: str, limit: int, seconds: int) -> None:
    """`take`, and TooManyRequests where that says to wait."""
    wait = take(name, key, limit, seconds)
    if wait is not None:
        raise TooManyRequests(wait)


def _ask(name: str, key: str, limit: int, seconds: int, *, cost: int) -> float | None:
    arguments = (f"limit:{name}:{key}", str(limit), str(seconds * 1000), str(cost))
    try:
        wait = int(redis_client().eval(_SCRIPT, 1, *arguments))
    except (redis.ConnectionError, redis.TimeoutError):
        return None
    except redis.RedisError:
        logger.exception("limit.failed", extra={"limit": name})
        return None
    return None if wait < 0 else wait / 1000

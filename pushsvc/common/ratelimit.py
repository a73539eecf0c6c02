"""How often something may happen: `limit` times in a window that its first time opens.

The count is exact over all processes (one script in Redis). While Redis is away, all is allowed.
"""

import logging

import redis

from pushsvc.common.errors import TooManyRequests
from pushsvc.common.redis_client import redis_client

logger = logging.getLogger(__name__)

# KEYS: the counter. ARGV: limit, window in ms. Returns ms to wait; -1: allowed, and counted.
_SCRIPT = """
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
local left = redis.call('PTTL', KEYS[1])
if count >= tonumber(ARGV[1]) then
  if left < 0 then return tonumber(ARGV[2]) end
  return left
end
redis.call('INCR', KEYS[1])
if left < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return -1
"""


def take(name: str, key: str, limit: int, seconds: int) -> float | None:
    """Counts one more `name` of `key`. None: it is within the limit; else the seconds to wait."""
    arguments = (f"limit:{name}:{key}", str(limit), str(seconds * 1000))
    try:
        wait = int(redis_client().eval(_SCRIPT, 1, *arguments))
    except (redis.ConnectionError, redis.TimeoutError):
        return None
    except redis.RedisError:
        logger.exception("limit.failed", extra={"limit": name})
        return None
    return None if wait < 0 else wait / 1000


def enforce(name: str, key: str, limit: int, seconds: int) -> None:
    """`take`, and TooManyRequests where that says to wait."""
    wait = take(name, key, limit, seconds)
    if wait is not None:
        raise TooManyRequests(wait)

"""A limit of calls per minute for all processes together: a token bucket in Redis.

An idle bucket starts slowly and reaches its full rate after a time of use, because push services
respond to a sudden flood with errors long before their quota is used up
(https://firebase.google.com/docs/cloud-messaging/scale-fcm). While Redis is away, all calls are
granted, and only the push service's own 429 limits them.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import redis
import structlog

from pushsvc.common.store.redis_client import Script, redis_client

logger = structlog.stdlib.get_logger(__name__)

BEGIN: Final = 0.1  # share of the full rate
_PAUSE_SECONDS: Final = 5.0  # between two calls of one send; a longer pause counts as idle
_LONGEST_WAIT: Final = 1.0  # seconds; then callers try again, because others may come first
_MEMORY_SECONDS: Final = 600

# A Lua function that takes up to `wanted` calls from the bucket at `key`. `now`: seconds on Redis's
# clock, because clocks of machines differ. `how.full`: the full rate a second. `how.ramp`: the
# seconds of the ramp, which begins at the share `how.first` (0 to 1). `how.pause`: the longest
# pause that counts as use. A bucket contains the calls of `how.holds` seconds, at least one, at the
# current rate. `ramp` (0 to 1) says how far the rate has risen. It rises while the bucket is used,
# and falls as fast while it is idle. Returns the granted calls, and the milliseconds until the rest
# (at most what the bucket holds) is available.
TAKE: Final = """
local function take(key, wanted, now, how)
  local function rate(ramp) return how.full * (how.first + (1 - how.first) * ramp) end
  local function size(ramp) return math.max(1, rate(ramp) * how.holds) end

  local known = redis.call('HMGET', key, 'at', 'ramp', 'tokens')
  local at, ramp, tokens = tonumber(known[1]), tonumber(known[2]), tonumber(known[3])
  if at then
    local passed = math.max(0, now - at)
    local before = ramp
    local way = passed > how.pause and -passed or passed
    ramp = math.min(1, math.max(0, ramp + way / how.ramp))
    tokens = math.min(size(ramp), tokens + passed * (rate(before) + rate(ramp)) / 2)
  else
    ramp = 0
    tokens = size(0)
  end

  local granted = math.min(wanted, math.floor(tokens))
  tokens = tokens - granted
  redis.call('HSET', key, 'at', string.format('%.6f', now), 'ramp', ramp, 'tokens', tokens)
  redis.call('EXPIRE', key, how.memory)
  if granted == wanted then return granted, 0 end
  local missing = math.min(wanted - granted, size(ramp)) - tokens
  return granted, math.ceil(missing / rate(ramp) * 1000)
end
"""

# The bucket holds the calls of a second.
_TAKE: Final = Script(
    TAKE
    + """
local clock = redis.call('TIME')
local granted, wait = take(bucket, wanted, clock[1] + clock[2] / 1000000, {
  full = full, ramp = ramp, first = first, pause = pause, memory = memory, holds = 1})
return {granted, wait}
""",
    keys=("bucket",),
    numbers=("wanted", "full", "ramp", "first", "pause", "memory"),
)


class Grant(NamedTuple):
    """`granted`: how many calls may begin now. `wait_seconds`: when to take the rest; 0 if all
    were granted."""

    granted: int
    wait_seconds: float


@dataclass(frozen=True, slots=True)
class Quota:
    """`per_minute` calls for each project of `service`. The rate starts at the share `begin` (0 to
    1) and is full after `ramp_seconds` of use."""

    service: str
    per_minute: float
    ramp_seconds: float = 60.0
    begin: float = BEGIN

    def take(self, project: str, wanted: int) -> Grant:
        """Grants some or all of `wanted` calls, in one round trip. Granted calls count as used."""
        call = _TAKE(
            bucket=self._key(project),
            wanted=wanted,
            full=self.per_minute / 60,
            ramp=self.ramp_seconds,
            first=self.begin,
            pause=_PAUSE_SECONDS,
            memory=_MEMORY_SECONDS,
        )
        try:
            ((granted, wait),) = redis_client().run(call)
        except (redis.ConnectionError, redis.TimeoutError):
            return Grant(wanted, 0.0)
        except redis.RedisError as error:
            logger.error("quota.failed", service=self.service, error=str(error))
            return Grant(wanted, 0.0)
        return Grant(int(granted), min(int(wait) / 1000, _LONGEST_WAIT))

    def _key(self, project: str) -> str:
        return f"pushsvc:quota:{self.service}:{project}"

"""How many calls a minute something allows, shared by all processes: a token bucket in Redis.

A bucket that was idle begins slowly and reaches its full rate after a while of use, because push
services answer a sudden flood with errors long before their quota is used up
(https://firebase.google.com/docs/cloud-messaging/scale-fcm). While Redis is away, all is granted:
the push service's own 429 is still there.
"""

import logging
from dataclasses import dataclass
from typing import Final, NamedTuple

import redis

from pushsvc.common.store.redis_client import redis_client

logger = logging.getLogger(__name__)

BEGIN: Final = 0.1  # of the full rate
_PAUSE_SECONDS: Final = 5.0  # between two calls of one send; what is longer counts as idle
_LONGEST_WAIT: Final = 1.0  # seconds after which a caller asks again, because others ask too
_MEMORY_SECONDS: Final = 600

# KEYS: the bucket. ARGV: wanted, full rate a second, seconds of the ramp, where it begins (0 to 1),
# longest pause that is use. Redis's own clock, so that machines need not agree on the time.
# A bucket holds what one second brings, but at least one call, at the rate that the ramp has
# reached (`ramp`, 0 to 1: it rises while the bucket is used and falls, as fast, while it is not).
# Returns what is granted, and the milliseconds until the rest or a second's worth of it is there.
_SCRIPT: Final = """
local wanted, full, seconds = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local first, pause = tonumber(ARGV[4]), tonumber(ARGV[5])
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local function rate(ramp) return full * (first + (1 - first) * ramp) end
local function size(ramp) return math.max(1, rate(ramp)) end

local known = redis.call('HMGET', KEYS[1], 'at', 'ramp', 'tokens')
local at, ramp, tokens = tonumber(known[1]), tonumber(known[2]), tonumber(known[3])
if at then
  local passed = math.max(0, now - at)
  local before = ramp
  local way = passed > pause and -passed or passed
  ramp = math.min(1, math.max(0, ramp + way / seconds))
  tokens = math.min(size(ramp), tokens + passed * (rate(before) + rate(ramp)) / 2)
else
  ramp = 0
  tokens = size(0)
end

local granted = math.min(wanted, math.floor(tokens))
tokens = tokens - granted
redis.call('HSET', KEYS[1], 'at', string.format('%.6f', now), 'ramp', ramp, 'tokens', tokens)
redis.call('EXPIRE', KEYS[1], ARGV[6])
if granted == wanted then return {granted, 0} end
local missing = math.min(wanted - granted, size(ramp)) - tokens
return {granted, math.ceil(missing / rate(ramp) * 1000)}
"""


class Grant(NamedTuple):
    """`granted` calls may begin now; `wait_seconds` until it is worth asking for the rest, 0 where
    there is none."""

    granted: int
    wait_seconds: float


@dataclass(frozen=True, slots=True)
class Quota:
    """`per_minute` calls for each project of `service`; the full rate is reached after
    `ramp_seconds` of use, from the share `begin` of it (0 to 1)."""

    service: str
    per_minute: float
    ramp_seconds: float = 60.0
    begin: float = BEGIN

    def take(self, project: str, wanted: int) -> Grant:
        """Some or all of `wanted` calls, in one round trip. What is granted counts as used."""
        arguments = (
            str(wanted),
            str(self.per_minute / 60),
            str(self.ramp_seconds),
            str(self.begin),
            str(_PAUSE_SECONDS),
            str(_MEMORY_SECONDS),
        )
        try:
            granted, wait = redis_client().eval(_SCRIPT, 1, self._key(project), *arguments)
        except (redis.ConnectionError, redis.TimeoutError):
            return Grant(wanted, 0.0)
        except redis.RedisError:
            logger.exception("quota.failed", extra={"service": self.service})
            return Grant(wanted, 0.0)
        return Grant(int(granted), min(int(wait) / 1000, _LONGEST_WAIT))

    def _key(self, project: str) -> str:
        return f"pushsvc:quota:{self.service}:{project}"

"""The Lua scripts of the breakers, each one round trip to Redis.

`open` and `probes` are sorted sets of breakers' names, scored by the millisecond at which they end.
Times are by Redis's clock, so the clocks of machines may differ. A `level` is how many times a
breaker opened without closing. A breaker that has a level and is not open is half-open. Its name
stays in `open` until it closes or is forgotten. A time that is further away than the longest wait
counts as past, because Redis's clock was set back since.
"""

from typing import Final

from pushsvc.common.store.redis_client import CLOCK, Script

# KEYS: `open`, `probes`, and other sorted sets of names. ARGV: the longest wait of the first two in
# milliseconds.
HELD: Final = (
    CLOCK
    + """
local held = {}
for place, key in ipairs(KEYS) do
  local after = string.format('(%d', now)
  local last = place <= 2 and string.format('%d', now + ARGV[1]) or '+inf'
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', key, after, last)) do
    table.insert(held, name)
  end
end
return held
"""
)

# Returns the names of the open breakers, and of the half-open breakers.
STATES: Final = Script(
    CLOCK
    + """
local open, half_open = {}, {}
local found = redis.call('ZRANGE', opened, 0, -1, 'WITHSCORES')
for at = 1, #found, 2 do
  local name, left = found[at], found[at + 1] - now
  if left > 0 and left <= longest * 1000 then
    table.insert(open, name)
  elseif redis.call('EXISTS', level_prefix .. name) == 1 then
    table.insert(half_open, name)
  end
end
return {open, half_open}
""",
    keys=("opened",),
    texts=("level_prefix",),
    numbers=("longest",),
)

# Returns 1 if the channel's breaker, `own`, or the service's is half-open.
IS_HALF_OPEN: Final = Script(
    CLOCK
    + """
local function is_half_open(name, level)
  local till = tonumber(redis.call('ZSCORE', opened, name) or 0)
  return redis.call('EXISTS', level) == 1 and (till <= now or till > now + longest * 1000)
end
return (is_half_open(own, own_level) or is_half_open(service, service_level)) and 1 or 0
""",
    keys=("opened", "own_level", "service_level"),
    texts=("own", "service"),
    numbers=("longest",),
)

TAKE_PROBE: Final = Script(
    CLOCK
    + """
local till = now + seconds * 1000
redis.call('ZREMRANGEBYSCORE', probes, '-inf', now)
redis.call('ZREMRANGEBYSCORE', probes, string.format('(%d', till), '+inf')
return redis.call('ZADD', probes, 'NX', till, own)
""",
    keys=("probes",),
    texts=("own",),
    numbers=("seconds",),
)

# `calls` counts a channel's calls. `votes` has a share for each channel that calls the service: the
# outages that it met, at most `most_of_one`, and 0 if most of its calls got a response. `failing`
# counts the shares above 0, `evidence` is their sum. Both keys expire some seconds after the first
# call in them. Returns the milliseconds for which the channel must wait, and an event of the
# channel's breaker and of the service's: the seconds for which it opened, -1 if it closed, else 0.
RECORD: Final = Script(
    CLOCK
    + """
local function left(name)
  local wait = tonumber(redis.call('ZSCORE', opened, name) or 0) - now
  return wait <= longest * 1000 and math.max(0, wait) or 0
end

local function open(name, level)
  if left(name) > 0 then return 0 end
  local wait = math.min(shortest * 2 ^ (redis.call('INCR', level) - 1), longest)
  redis.call('EXPIRE', level, memory)
  redis.call('ZREMRANGEBYSCORE', opened, '-inf', now - memory * 1000)
  redis.call('ZADD', opened, now + wait * 1000, name)
  return wait
end

-- Calls that were in flight when it opened, and failed since, are no evidence about it now.
local function close(name, level, counted)
  if redis.call('DEL', level) == 0 then return 0 end
  redis.call('DEL', counted)
  if left(name) == 0 then redis.call('ZREM', opened, name) end
  return -1
end

local function count(key, field, by, seconds)
  local total = redis.call('HINCRBY', key, field, by)
  if redis.call('TTL', key) < 0 then redis.call('EXPIRE', key, seconds) end
  return total
end

local own_event, service_event, share = 0, 0, 0
if is_probe == 1 then
  redis.call('ZREM', probes, own)
  if outages > 0 and outages >= responded then
    own_event, share = open(own, own_level), most_of_one
  elseif responded > 0 then
    own_event = close(own, own_level, calls)
    service_event = close(service, service_level, votes)
  end
else
  local all_responded = count(calls, 'responded', responded, window)
  local all_outages = count(calls, 'outages', outages, window)
  if all_outages >= math.max(all_responded, 1) then
    share = math.min(all_outages, most_of_one)
    if all_responded + all_outages >= least then own_event = open(own, own_level) end
  end
end

if responded + outages > 0 and left(service) == 0 then
  local before = tonumber(redis.call('HGET', votes, channel) or 0)
  redis.call('HSET', votes, channel, share)
  local turned = math.min(share, 1) - math.min(before, 1)
  local failing = count(votes, 'failing', turned, service_window)
  local evidence = count(votes, 'evidence', share - before, service_window)
  local callers = redis.call('HLEN', votes) - 2
  if evidence >= least and failing * 2 > callers then
    service_event = open(service, service_level)
    redis.call('DEL', votes)
  end
end
return {math.max(left(own), left(service)), own_event, service_event}
""",
    keys=("opened", "probes", "own_level", "service_level", "calls", "votes"),
    texts=("own", "service", "channel"),
    numbers=(
        "responded", "outages", "is_probe", "least", "most_of_one", "window", "service_window",
        "shortest", "longest", "memory",
    ),
)  # fmt: skip

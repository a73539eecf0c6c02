"""The Lua scripts of the breakers, each one round trip to Redis. `pipeline.breakers` passes keys.

`open` and `probes` are sorted sets of breakers' names, scored by the millisecond at which they end.
Times are by Redis's clock, so the clocks of machines may differ. A `level` is how many times a
breaker opened without closing. A breaker that has a level and is not open is half-open. Its name
stays in `open` until it closes or is forgotten.
"""

from typing import Final

_CLOCK: Final = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
"""

# KEYS: open, probes.
HELD: Final = (
    _CLOCK
    + """
local held = {}
for _, key in ipairs(KEYS) do
  local after = string.format('(%d', now)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', key, after, '+inf')) do
    table.insert(held, name)
  end
end
return held
"""
)

# KEYS: open. ARGV: the prefix of the keys of levels. Returns the names of the open breakers, and of
# the half-open breakers.
STATES: Final = (
    _CLOCK
    + """
local open = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%d', now), '+inf')
local half_open = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do
  if redis.call('EXISTS', ARGV[1] .. name) == 1 then table.insert(half_open, name) end
end
return {open, half_open}
"""
)

# KEYS: open, then levels. ARGV: the names of the breakers of these levels.
IS_HALF_OPEN: Final = (
    _CLOCK
    + """
for i, name in ipairs(ARGV) do
  local till = tonumber(redis.call('ZSCORE', KEYS[1], name) or 0)
  if redis.call('EXISTS', KEYS[i + 1]) == 1 and till <= now then return 1 end
end
return 0
"""
)

# KEYS: probes. ARGV: name, seconds.
TAKE_PROBE: Final = (
    _CLOCK
    + """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZADD', KEYS[1], 'NX', now + ARGV[2] * 1000, ARGV[1])
"""
)

# `calls` counts a channel's calls. `votes` has a share for each channel that calls the service: the
# outages that it met, at most `most_of_one`, and 0 if most of its calls were answered. `failing`
# counts the shares above 0, `evidence` is their sum. Both keys expire some seconds after the first
# call in them. Returns the milliseconds for which the channel must wait, and an event of the
# channel's breaker and of the service's: the seconds for which it opened, -1 if it closed, else 0.
RECORD: Final = (
    _CLOCK
    + """
local opened, probes, own_level, service_level, calls, votes = unpack(KEYS)
local own, service, channel = ARGV[1], ARGV[2], ARGV[3]
local answered, outages, is_probe = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local least, most_of_one = tonumber(ARGV[7]), tonumber(ARGV[8])
local window, service_window = ARGV[9], ARGV[10]
local shortest, longest, memory = tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[13]

local function left(name)
  return math.max(0, tonumber(redis.call('ZSCORE', opened, name) or 0) - now)
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
if is_probe then
  redis.call('ZREM', probes, own)
  if outages > 0 and outages >= answered then
    own_event, share = open(own, own_level), most_of_one
  elseif answered > 0 then
    own_event = close(own, own_level, calls)
    service_event = close(service, service_level, votes)
  end
else
  local all_answered = count(calls, 'answered', answered, window)
  local all_outages = count(calls, 'outages', outages, window)
  if all_outages >= math.max(all_answered, 1) then
    share = math.min(all_outages, most_of_one)
    if all_answered + all_outages >= least then own_event = open(own, own_level) end
  end
end

if answered + outages > 0 and left(service) == 0 then
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
"""
)

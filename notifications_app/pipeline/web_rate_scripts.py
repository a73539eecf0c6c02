"""The Lua scripts of `pipeline.web_rate`. Times are milliseconds by Redis's clock.

`state` is a hash for each channel at each push service:

- `p0` to `p11`: "slot accepted" for each of the last twelve slots, which are a minute together.
- `first`, `hit`, `at`: how many recent calls there were, how many were throttled, and when the last
  of them was added. Older calls fade: together there are at most `most_recent`.
- `suspected`: until when trials are made, because recent calls were throttled.
- `limit`: calls a minute. `since`: when it was learned.
- `probing`: no call was accepted since calls were throttled.
- `fast`: how the limit grows until calls are throttled again. "1": it is doubled in short periods,
  because the first probe was accepted, so the service lets calls through all the time. "2": it is
  doubled each minute, because the service seems to count whole minutes. "0": by a tenth. Absent
  until the first probe.
- `period`, `calls`, `hits`: when the current period began, its calls, and how many were throttled.

`held` is a sorted set of names that must not call, scored by the moment until which. `limited` has
the names with a limit, scored by the moment at which it is forgotten.
"""

from typing import Final

from notifications_app.pipeline import quota
from pushsvc.common.store.redis_client import CLOCK, Script

_HOLDING: Final = """
local function left()
  return math.max(0, tonumber(redis.call('ZSCORE', held, name) or 0) - now)
end

local function hold(wait)
  redis.call('ZREMRANGEBYSCORE', held, '-inf', now)
  redis.call('ZADD', held, 'GT', now + wait, name)
  redis.call('PEXPIRE', held, 7200000)
end
"""

# `wanted`: calls. `trial` and `probe`: how many calls these have; `probe_wait`: the wait after one.
# `turn`: the wait for an empty bucket. `fill`: how long the bucket fills. `memory`: for how many
# seconds an unused one is kept. Returns nothing for a channel that may call without a bound.
# Otherwise returns how many calls may be made, the wait of the others, the limit or '', and 1 for a
# trial or a probe.
BEGIN: Final = Script(
    quota.TAKE
    + CLOCK
    + """
local known = redis.call('HMGET', state, 'limit', 'suspected', 'probing')
local limit, suspected = tonumber(known[1]), tonumber(known[2])
if not limit and (suspected or 0) <= now then return {} end
"""
    + _HOLDING
    + """
if left() > 0 then return {0, left(), known[1] or '', 0} end
if not limit or known[3] then
  hold(probe_wait)
  local most = limit and probe or trial
  return {math.min(wanted, most), wanted > most and turn or 0, known[1] or '', 1}
end
local granted = take(bucket, wanted, now / 1000, {
  full = limit / minute * 1000, ramp = 1, first = 1, pause = 1, memory = memory,
  holds = fill / 1000})
if granted == wanted then return {granted, 0, known[1], 0} end
hold(turn)
return {granted, turn, known[1], 0}
""",
    keys=("state", "held", "bucket"),
    texts=("name",),
    numbers=(
        "wanted", "trial", "probe", "probe_wait", "turn", "minute", "fill", "memory",
    ),
)  # fmt: skip

# `accepted`: calls. `calls`: all that count; `hits`: how many of them were throttled. `recent` and
# `recent_hits`: the same two of the most recent calls; `retry`: the shortest Retry-After of these.
# `is_trial`: 1 for a trial or a probe. Returns the milliseconds for which the channel must not call
# because of these calls, the limit or '', and 1 if it was learned now, or 2 if a trial was
# accepted.
RECORD: Final = Script(
    CLOCK
    + _HOLDING
    + """
is_trial = is_trial == 1
local slots = 12
local slot = math.floor(now / (minute / slots))

local function slot_of(text)
  local at, count = string.match(text or '', '^(%d+) (%d+)$')
  return tonumber(at), tonumber(count)
end

if accepted > 0 then
  local place = 'p' .. slot % slots
  local at, count = slot_of(redis.call('HGET', state, place))
  if at ~= slot then count = 0 end
  redis.call('HSET', state, place, string.format('%d %d', slot, count + accepted))
end

local function last_minute()
  local sum = 0
  for place = 0, slots - 1 do
    local at, count = slot_of(redis.call('HGET', state, 'p' .. place))
    if at and at > slot - slots then sum = sum + count end
  end
  return sum
end

local function set(...) redis.call('HSET', state, ...) end

local function remember()
  redis.call('ZADD', limited, now + memory, name)
  redis.call('PEXPIRE', limited, memory)
  redis.call('PEXPIRE', state, memory)
end

local function begin_period() set('period', now, 'calls', 0, 'hits', 0, 'first', 0, 'hit', 0) end

local known = redis.call('HMGET', state, 'limit', 'suspected', 'first', 'hit', 'at', 'probing',
  'fast', 'period', 'calls', 'hits')
local limit, suspected = tonumber(known[1]), (tonumber(known[2]) or 0) > now
local is_probing, fast = known[6], known[7]

-- The recent calls, with those of earlier records.
local first, hit = 0, 0
if now - (tonumber(known[5]) or 0) <= window then
  first, hit = tonumber(known[3]) or 0, tonumber(known[4]) or 0
end
local room = most_recent - recent
if first > room then first, hit = room, hit * room / first end
first, hit = first + recent, hit + recent_hits
local are_throttled = first >= least and hit * 2 >= first

if not limit then
  redis.call('PEXPIRE', state, 2 * minute)
  if suspected and not is_trial then return {0, '', 0} end
  if hit == 0 and not suspected then
    if known[3] then redis.call('HDEL', state, 'first', 'hit') end
    return {0, '', 0}
  end
  set('first', first, 'hit', hit, 'at', now)
  if first < least then return {0, '', 0} end
  if not are_throttled then
    if suspected then
      redis.call('HDEL', state, 'suspected', 'first', 'hit')
      redis.call('ZREM', held, name)
      return {0, '', 2}
    end
    return {0, '', 0}
  end
  if not suspected then
    set('suspected', now + suspicion, 'first', 0, 'hit', 0)
    return {turn, '', 0}
  end
  redis.call('ZREMRANGEBYSCORE', limited, '-inf', now)
  if redis.call('ZCARD', limited) >= most_limited then return {0, '', 0} end
  limit = math.max(floor, last_minute())
  set('limit', limit, 'since', now, 'probing', 1)
  if retry > fast_wait then set('fast', '2') end
  redis.call('HDEL', state, 'suspected')
  begin_period()
  remember()
  local wait = math.max(retry, probe_wait)
  hold(wait)
  return {wait, limit, 1}
end

if hits > 0 then remember() end

if is_probing then
  local wait = 0
  if is_trial and recent > 0 then
    if recent_hits * 2 >= recent then
      wait = math.max(retry, probe_wait)
      hold(wait)
      if not fast then set('fast', '2') end
    else
      redis.call('HDEL', state, 'probing')
      redis.call('ZREM', held, name)
      if not fast then set('fast', '1') end
      begin_period()
    end
  elseif recent > 0 and recent_hits * 2 >= recent then
    wait = left()
  end
  return {wait, limit, 0}
end

-- What the service accepted is what it allows, but a response is no reason to fall below a half.
local function lower()
  if fast == '1' then
    limit = limit / 2
  else
    limit = math.max(limit / 2, math.min(limit, last_minute()))
  end
  limit = math.max(floor, limit)
  set('limit', limit, 'fast', '0')
  begin_period()
end

if are_throttled then
  lower()
  set('probing', 1)
  local wait = math.max(retry, probe_wait)
  hold(wait)
  return {wait, limit, 0}
end
set('first', first, 'hit', hit, 'at', now)
calls = redis.call('HINCRBY', state, 'calls', calls)
hits = redis.call('HINCRBY', state, 'hits', hits)
local passed = now - (tonumber(known[8]) or now)
local are_many = calls >= least and hits * 10 > calls
local are_enough = calls * 2 >= limit * passed / minute
if fast == '1' then
  if are_many then
    lower()
  elseif passed >= fast_wait then
    if hits == 0 and are_enough then limit = limit * 2 end
    set('limit', limit)
    begin_period()
  end
elseif passed >= minute then
  if are_many then
    lower()
  else
    if hits == 0 and are_enough then limit = limit * (fast == '2' and 2 or 1.1) end
    set('limit', limit)
    begin_period()
  end
end
return {0, limit, 0}
""",
    keys=("state", "held", "limited"),
    texts=("name",),
    numbers=(
        "accepted", "calls", "hits", "recent", "recent_hits", "retry", "is_trial", "minute",
        "window", "probe_wait", "turn", "fast_wait", "suspicion", "memory", "most_recent", "least",
        "floor", "most_limited",
    ),
)  # fmt: skip

# Returns name, limit and since of each limit, in turn.
LIMITS: Final = Script(
    CLOCK
    + """
local found = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', limited, string.format('(%d', now), '+inf')) do
  local known = redis.call('HMGET', state_prefix .. name, 'limit', 'since')
  if known[1] then
    for _, each in ipairs({name, known[1], known[2]}) do table.insert(found, each) end
  end
end
return found
""",
    keys=("limited",),
    texts=("state_prefix",),
)

-- Gives back to KEYS[1] what ARGV says, never more than was used. Returns 1, or 0 when nothing was given back:
--   bucket: 'b', cost as µs and parts, parts in a µs, and for a slot of a queue its time as µs and parts: it is given
--     back only if nobody has queued behind it
--   fixed window: 'w', cost, period in µs
--   sliding window: 'l', cost, period in µs
-- The states are those of rate_take.lua.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- What no limit has written is refused as a key of another type is: the command that does not fit it says so.
local function pair(key, text)
  local first, second = string.match(text, '^(%d+):?(%d*)$')
  if not first then
    redis.call('LLEN', key)
  end
  return tonumber(first), tonumber(second) or 0
end

local refund = {}

function refund.b(key)
  local state = redis.call('GET', key)
  if not state then
    return 0
  end
  local cost, costParts, parts = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
  local full, fullParts = pair(key, state)
  if fullParts >= parts then
    full, fullParts = full + 1, 0
  end
  if full < now or full == now and fullParts == 0 then
    return 0
  end
  full, fullParts = full - cost, fullParts - costParts
  if fullParts < 0 then
    full, fullParts = full - 1, fullParts + parts
  end
  if ARGV[5] and (full ~= tonumber(ARGV[5]) or fullParts ~= tonumber(ARGV[6])) then
    return 0
  end
  if full < now then
    redis.call('DEL', key)
  elseif fullParts == 0 then
    redis.call('SET', key, full)
    redis.call('PEXPIREAT', key, math.ceil(full / 1000))
  else
    redis.call('SET', key, string.format('%.0f:%.0f', full, fullParts))
    redis.call('PEXPIREAT', key, math.ceil((full + 1) / 1000))
  end
  return 1
end

function refund.w(key)
  local state = redis.call('GET', key)
  if not state then
    return 0
  end
  local cost, period = tonumber(ARGV[2]), tonumber(ARGV[3])
  local start, used = pair(key, state)
  if start - start % period < now - now % period or used == 0 then
    return 0
  end
  redis.call('SET', key, string.format('%.0f:%.0f', start, math.max(used - cost, 0)), 'KEEPTTL')
  return 1
end

-- @include sliding_log.lua

-- The oldest units that count: the latest may be somebody else's.
function refund.l(key)
  local cost, period = tonumber(ARGV[2]), tonumber(ARGV[3])
  local outside, used = logAt(key, period)
  if used == 0 then
    return 0
  end
  redis.call('LTRIM', key, outside + cost, -1)
  return 1
end

return refund[ARGV[1]](KEYS[1])

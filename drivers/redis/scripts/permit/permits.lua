-- A part of other scripts. When claims have shares of it, KEYS[1] is a sorted set: their values by the end of their
-- leases, in ms on this server's clock, and before them the member 'permits' by limit * 2^20 + the sum of their
-- weights. So one command tells the limit, what is taken, and which lease ends first. A value ends with
-- "@<weight>/<limit>". The key lives as long as the longest lease.
local unit = 1048576
-- No lease is as long, in ms. A member that somebody else has put in may have any score.
local longest = 100000000000

-- Nil for a member that is somebody else's: it takes nothing.
local function shareOf(value)
  local weight, limit = string.match(value, '^%x+@[^@]*@(%d+)/(%d+)$')
  return tonumber(weight), tonumber(limit)
end

local function writeHead(permits)
  redis.call('ZADD', KEYS[1], permits.limit * unit + math.max(permits.used, 0), 'permits')
end

-- After the longest lease has perhaps changed.
local function endWithTheLast(now)
  local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
  redis.call('PEXPIRE', KEYS[1], math.min(last - now, longest))
end

-- {limit, used, ends}, with the time at which the first lease ends. Leases that have ended by `now` are cleared.
-- {used} when the key is free; false when one claim has it as a whole, or it is somebody else's.
local function readPermits(now)
  local head = redis.pcall('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES')
  if head.err and not string.find(head.err, 'WRONGTYPE') then
    return redis.call('ZRANGE', KEYS[1], 0, 1)  -- raises it
  end
  if not head.err and not head[1] then
    return {used = 0}
  end
  local limit = head[1] == 'permits' and math.floor(head[2] / unit) or 0
  if not head[3] or limit < 1 or limit > 1000000 then
    return false
  end
  local permits = {limit = limit, used = head[2] - limit * unit, ends = tonumber(head[4])}
  if permits.ends > now then
    return permits
  end
  -- Many may have ended together, with the process that had them: in a few large steps then.
  local leases, step = {head[3], head[4]}, 1
  repeat
    local ended = {}
    for index = 1, #leases, 2 do
      if tonumber(leases[index + 1]) > now then
        break
      end
      table.insert(ended, leases[index])
      permits.used = permits.used - (shareOf(leases[index]) or 0)
    end
    redis.call('ZREM', KEYS[1], unpack(ended))
    leases = redis.call('ZRANGE', KEYS[1], 1, step, 'WITHSCORES')
    permits.ends, step = tonumber(leases[2]), math.min(4 * step, 1000)
  until not permits.ends or permits.ends > now
  if not permits.ends then
    redis.call('DEL', KEYS[1])
    return {used = 0}
  end
  writeHead(permits)
  return permits
end

-- 1, or 0 when `value` has no share.
local function takeBack(value)
  local members = redis.pcall('ZRANGE', KEYS[1], 0, 2)
  -- The only one. Its lease runs, since the key would have ended with it.
  if members[1] == 'permits' and members[2] == value and not members[3] then
    return redis.call('DEL', KEYS[1])
  end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local permits = readPermits(now)
  if not permits or not permits.limit or redis.call('ZREM', KEYS[1], value) == 0 then
    return 0
  end
  permits.used = permits.used - (shareOf(value) or 0)
  if permits.used == 0 then
    return redis.call('DEL', KEYS[1])
  end
  writeHead(permits)
  endWithTheLast(now)
  return 1
end

-- A part of other scripts. When claims have shares of it, KEYS[1] is a sorted set: their values by the end of their
-- leases, in ms on this server's clock, and before them the member 'permits' by limit * 2^20 + the sum of their
-- weights. So one command tells the limit, what is taken, and which lease ends first. A value ends with
-- "@<weight>/<limit>"; with one '@' more, the share is only offered to that claim. The key lives as long as the
-- longest lease.
local unit = 1048576

local function shareOf(value)
  local weight, limit = string.match(value, '^%x+@[^@]*@(%d+)/(%d+)@?$')
  return tonumber(weight), tonumber(limit)
end

local function writeHead(permits)
  redis.call('ZADD', KEYS[1], permits.limit * unit + permits.used, 'permits')
end

-- After the longest lease has perhaps changed.
local function endWithTheLast(now)
  redis.call('PEXPIRE', KEYS[1], redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2] - now)
end

-- {limit, used, first, ends}: `first` has the lease that ends first. Leases that have ended by `now` are cleared.
-- {used} when the key is free; false when one claim has it as a whole, or it is somebody else's.
local function readPermits(now)
  local head = redis.pcall('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES')
  if head.err and not string.find(head.err, 'WRONGTYPE') then
    return redis.call('ZRANGE', KEYS[1], 0, 1)  -- raises it
  end
  if not head.err and not head[1] then
    return {used = 0}
  end
  if head[1] ~= 'permits' then
    return false
  end
  local limit = math.floor(head[2] / unit)
  local permits = {limit = limit, used = head[2] - limit * unit, first = head[3], ends = tonumber(head[4])}
  if permits.ends > now then
    return permits
  end
  while permits.ends and permits.ends <= now do
    redis.call('ZREM', KEYS[1], permits.first)
    permits.used = permits.used - shareOf(permits.first)
    local next = redis.call('ZRANGE', KEYS[1], 1, 1, 'WITHSCORES')
    permits.first, permits.ends = next[1], tonumber(next[2])
  end
  if not permits.ends then
    redis.call('DEL', KEYS[1])
    return {used = 0}
  end
  writeHead(permits)
  return permits
end

-- 1, or 0 when `value` has no share, and is not offered one.
local function takeBack(value)
  local members = redis.pcall('ZRANGE', KEYS[1], 0, 2)
  -- The only one. Its lease runs, since the key would have ended with it.
  if members[1] == 'permits' and members[2] == value and not members[3] then
    return redis.call('DEL', KEYS[1])
  end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local permits = readPermits(now)
  -- Held, or only offered.
  if not permits or not permits.limit or redis.call('ZREM', KEYS[1], value, value .. '@') == 0 then
    return 0
  end
  permits.used = permits.used - shareOf(value)
  if permits.used == 0 then
    return redis.call('DEL', KEYS[1])
  end
  writeHead(permits)
  endWithTheLast(now)
  return 1
end

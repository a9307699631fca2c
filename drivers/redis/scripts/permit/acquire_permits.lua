-- Gives the claim ARGV[1] its share of KEYS[1], ARGV[3] of ARGV[4] permits, for ARGV[2] ms, if there are so many and
-- nobody waits in the queue KEYS[2] and KEYS[3] (or ARGV[6] is 'ahead'), or if it has its share already: by a request that
-- was sent twice, or from the queue (scripts/queue/queue.lua). Returns {1, fence}, {0, ms until the first lease ends, or -1},
-- or {2, limit} when those who hold the key have another limit.
--
-- KEYS[4], the fence counter (scripts/lock/fence.lua), is given when grants carry a fence; it is kept for ARGV[5] ms.
-- Only who takes the last permit draws a new one. Others get the last one.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local weight, limit = tonumber(ARGV[3]), tonumber(ARGV[4])

-- @include ../lock/fence.lua

local function fence(isNew)
  if not KEYS[4] then
    return 0
  end
  local last = not isNew and tonumber(redis.pcall('GET', KEYS[4]))
  return last or drawFence(KEYS[4], ARGV[5], time)
end

-- What most readers find: neither the key nor its queue. The head is as in permits.lua.
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  redis.call('ZADD', KEYS[1], limit * 2 ^ 20 + weight, 'permits', now + ARGV[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, fence(weight == limit)}
end

-- @include permits.lua

local permits = readPermits(now)
if not permits then
  return ofMaster({0, redis.call('PTTL', KEYS[1])})
end

local function grant(takesTheLast)
  if not permits.limit or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  return {1, fence(takesTheLast)}
end

-- Those in front whose processes have died are taken out.
local function isWaitedFor()
  if redis.call('EXISTS', KEYS[2]) == 0 then
    return false
  end

  -- @include ../queue/waiting.lua

  -- Keys of another type in its place are somebody else's.
  if redis.pcall('ZRANGE', KEYS[2], 0, 0).err or type(redis.pcall('HGET', KEYS[3], ARGV[1])) == 'table' then
    return true
  end
  local waiter, entry = first(now)
  while waiter and not isHeard(entry.channel) do
    remove(waiter)
    waiter, entry = first(now)
  end
  return waiter or mayRemove == 0
end

local isSame = not permits.limit or permits.limit == limit
if isSame and permits.used + weight <= limit and (ARGV[6] == 'ahead' or not isWaitedFor()) then
  local head = limit * unit + permits.used
  local added = redis.call('ZADD', KEYS[1], head + weight, 'permits', now + ARGV[2], ARGV[1])
  local isNew = not permits.limit or added == 1
  if not isNew then
    redis.call('ZADD', KEYS[1], head, 'permits')
  end
  return grant(isNew and permits.used + weight == limit)
end
if permits.limit and redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
  return grant(false)
end
if not isSame then
  return ofMaster({2, permits.limit})
end
return ofMaster({0, permits.ends and permits.ends - now or -1})

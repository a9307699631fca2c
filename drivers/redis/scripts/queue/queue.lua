-- Those who wait for the lock KEYS[1], first come, first served. KEYS[2] is a sorted set of their values by ticket, KEYS[3] a
-- hash of the same: "<looks> <number> <ttl> <kept> <channel>". A waiter looks again by `looks`, in ms on this server's clock, and
-- counts as dead five seconds after that. Its number, which is another one at each look, is published to its channel to wake it
-- up. A waiter that no message can reach has an empty channel; it polls.
--
-- A lock that becomes free is granted to the first of them that is alive, for the ttl that it asks for, and the message says so:
-- "<number> grant <fence>". With the present number it was sent after the waiter's last look, and so the lease began after that
-- look. The fence is from the counter KEYS[4] (scripts/lock/fence.lua), which is kept for `kept` ms; it is 0 for a waiter that
-- wants none ('0'). A waiter that has missed the message finds by looking that it has the key. Each look renews what it has.
--
-- ARGV: the operation, and the value of the caller.
--   wait, waitShare
--            ARGV[3] its number, ARGV[4] its channel, ARGV[5] its ticket if it has one, else '', ARGV[6] its ttl, ARGV[7] its
--            `kept`. Returns {1, fence} when it has the key; else {0, ms until it should look again, its ticket, 1 if it was not
--            in the queue}, or {2, limit} when those who share the key have another limit.
--   release, releaseShare
--            takes it out of the queue, and frees the key if it has that. Returns 1 when it was so, else 0. With KEYS[1] alone
--            it only frees the key: on a cluster, the others may be at another node already.
--   resize   gives a key that is shared ARGV[3] permits. Returns 1 when it is shared, else 0.
--   break    frees the key; unless ARGV[2] is '', only if that is the SHA-1 of its value, or that share of it. Returns 1 when
--            it was so, else 0.

-- A claim that has, or wants, a share of the lock (scripts/permit/permits.lua) says so by its value, and by its operations. It
-- is served in its turn when there are so many permits: all of the first that fit are granted theirs.

-- What most releases find: nobody waits.
local value
if ARGV[1] == 'release' then
  value = redis.pcall('GET', KEYS[1])
  if value == ARGV[2] and (not KEYS[2] or redis.call('EXISTS', KEYS[2]) == 0) then
    return redis.call('DEL', KEYS[1])
  end
end

-- @framed
local forShare = ARGV[1] == 'releaseShare' or ARGV[1] == 'waitShare' or ARGV[1] == 'resize'
if value == nil then
  value = not forShare and redis.pcall('GET', KEYS[1])
end
-- A key of another type is somebody else's. Any other error says nothing about the key: it is raised.
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then
  return redis.call('GET', KEYS[1])
end
local own = value == ARGV[2]
if ARGV[1] == 'release' and not own and (not KEYS[2] or redis.call('EXISTS', KEYS[2]) == 0) then
  return 0
end

local function isOfAnotherType(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'WRONGTYPE')
end

-- What isQueue() has read: the first two in the queue, and what is known of the first.
local firstTwo, firstEntry

-- Keys of another type in its place are somebody else's, and no queue.
local function isQueue()
  firstTwo = redis.pcall('ZRANGE', KEYS[2], 0, 1)
  firstEntry = redis.pcall('HGET', KEYS[3], firstTwo[1] or ARGV[2])
  return not isOfAnotherType(firstTwo) and not isOfAnotherType(firstEntry)
end

local function hasQueue()
  return redis.call('EXISTS', KEYS[2]) == 1 and isQueue()
end

if ARGV[1] == 'release' and not isQueue() then
  return own and redis.call('DEL', KEYS[1]) or 0
end

-- @include ../permit/permits.lua

-- What most releases of a share find: nobody waits.
local released
if ARGV[1] == 'releaseShare' then
  released = takeBack(ARGV[2])
  if not KEYS[2] or not hasQueue() then
    return released
  end
end

-- @include waiting.lua

-- @include ../lock/fence.lua

front = firstTwo or front
if front[1] and type(firstEntry) == 'string' then
  read[front[1]] = firstEntry
end

-- When a waiter looks that polls; and at the latest, one that is new, or has become the first.
local pollAfter, soon = 250, 1000

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

-- The fence of a claim that has the key, or 0. Unless it `isNew`, it is the last one that was drawn: nobody else was granted the
-- key since then, or only those whose shares do not take the last permit, which draw none.
local function fenceOf(kept, isNew)
  if kept == '0' then
    return 0
  end
  return not isNew and tonumber(redis.pcall('GET', KEYS[4])) or drawFence(KEYS[4], kept, time)
end

-- What a grant to the waiter takes beside `permits`, nil for all of the key, and its limit. Of a claim that was sent again and has
-- its share beside its place in the queue, that is counted already.
local function takenBy(waiter, permits)
  local weight, limit = shareOf(waiter)
  local isHeld = weight and permits.limit and redis.call('ZSCORE', KEYS[1], waiter)
  return isHeld and 0 or weight, limit
end

-- Grants a waiter all of the key, or its share of that, and tells it, unless it is `caller`. Returns the fence; nil when it
-- cannot be told: then it is granted nothing.
local function grant(waiter, entry, permits, caller)
  local isToBeTold = waiter ~= caller and entry.channel ~= ''
  -- With the message, the waiter has the key. So the message comes last, and nothing is published that is not so: what nobody
  -- hears here may be heard at another node of a cluster, or at a replica. No waiter has the number 0.
  if isToBeTold and (listeners(entry.channel) or publish(entry.channel, '0')) == 0 then
    return nil
  end
  local weight, limit = takenBy(waiter, permits)
  if weight then
    if not permits.limit then
      redis.call('DEL', KEYS[1])
    end
    permits.limit, permits.used = limit, permits.used + weight
    redis.call('ZADD', KEYS[1], limit * unit + permits.used, 'permits', now + entry.ttl, waiter)
    endWithTheLast(now)
  else
    redis.call('SET', KEYS[1], waiter, 'PX', entry.ttl)
  end
  local fence = fenceOf(entry.kept, not weight or permits.used == permits.limit)
  if isToBeTold then
    publish(entry.channel, string.format('%s grant %.0f', entry.number, fence))
  end
  return fence
end

local function fits(waiter, permits)
  local weight, limit = takenBy(waiter, permits)
  return not permits.limit or limit == permits.limit and permits.used + weight <= limit
end

-- Grants a key, of which `permits` are taken, to the first one, or to all of the first that fit in. One of them that
-- is `caller` need not be told; if it is behind one that does not fit, that one has to be alive. Returns whether anybody was
-- granted it, and the fence of the caller if it was.
local function handOver(permits, caller)
  local shortest, fenceOfCaller
  local waiter, entry = first(now)
  while waiter do
    local fitsIn = fits(waiter, permits)
    if not fitsIn and (not caller or waiter == caller or isHeard(entry.channel)) then
      break
    end
    remove(waiter)
    local fence = fitsIn and grant(waiter, entry, permits, caller)
    if fence then
      shortest = math.min(shortest or entry.ttl, entry.ttl)
      fenceOfCaller = waiter == caller and fence or fenceOfCaller
      if not permits.limit then
        break
      end
    end
    waiter, entry = first(now)
  end
  if shortest then
    -- The one behind them is the first now; it looks at once if only this call takes out no more.
    local isCut = mayRemove == 0
    mayRemove = math.max(mayRemove, 1)
    wakeFirst(now, isCut and 1 or math.min(shortest, soon) + 1, caller)
  end
  return shortest ~= nil, fenceOfCaller
end

if ARGV[1] == 'release' then
  -- Who holds the lock is in the queue only after a reply that was lost.
  if own and front[1] ~= ARGV[2] then
    leaving = ARGV[2]
  else
    remove(ARGV[2])
  end
  if own then
    return handOver({used = 0}) and 1 or redis.call('DEL', KEYS[1])
  end
  -- It was perhaps the first, and the one behind it does not look as often as the first must.
  wakeFirst(now, pollAfter)
  return 0
end

local permits = false
if forShare or isOfAnotherType(value) then
  permits = readPermits(now)
elseif not value then
  permits = {used = 0}
end

if ARGV[1] == 'releaseShare' then
  -- Who is in the queue was perhaps the first, as in 'release'.
  local waited = remove(ARGV[2])
  if not (permits and handOver(permits)) and (waited or released == 0) then
    wakeFirst(now, pollAfter)
  end
  return released
end

if ARGV[1] == 'resize' then
  if not permits or not permits.limit then
    return 0
  end
  permits.limit = tonumber(ARGV[3])
  writeHead(permits)
  if hasQueue() and not handOver(permits) then
    -- It perhaps names the former limit.
    wakeFirst(now, 1)
  end
  return 1
end

if ARGV[1] == 'break' then
  if not value then
    return 0
  end
  -- Of a sorted set that is not ours, what scripts/lock/holder.lua makes of it.
  local shown = value
  if type(value) == 'table' then
    shown = redis.pcall('ZRANGE', KEYS[1], 0, 0)[1] == 'permits' and redis.call('ZRANGE', KEYS[1], -1, -1)[1] or ''
  end
  if ARGV[2] ~= '' and permits and permits.limit then
    for _, sharer in ipairs(redis.call('ZRANGE', KEYS[1], 1, -1)) do
      if redis.sha1hex(sharer) == ARGV[2] then
        takeBack(sharer)
        if hasQueue() then
          remove(sharer)
          handOver(readPermits(now))
        end
        return 1
      end
    end
    return 0
  end
  if ARGV[2] ~= '' and redis.sha1hex(shown) ~= ARGV[2] then
    return 0
  end
  if not hasQueue() then
    return redis.call('DEL', KEYS[1])
  end
  -- A claim that is broken may be in the queue too, after a reply that was lost.
  remove(shown)
  return handOver({used = 0}) and 1 or redis.call('DEL', KEYS[1])
end

if forShare and permits and permits.limit then
  own = redis.call('ZSCORE', KEYS[1], ARGV[2])
  local _, limit = shareOf(ARGV[2])
  if not own and limit ~= permits.limit then
    remove(ARGV[2])
    -- The one behind it perhaps names the same one.
    wakeFirst(now, 1)
    return {2, permits.limit}
  end
end
local ttl, kept = tonumber(ARGV[6]), ARGV[7]
if own then
  -- It may have a place in the queue, too, after a reply that was lost.
  if hasQueue() then
    remove(ARGV[2])
  end
  if forShare then
    redis.call('ZADD', KEYS[1], now + ttl, ARGV[2])
    endWithTheLast(now)
  else
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
  return {1, fenceOf(kept)}
end
-- What most that are new find where many come and go: it is somebody else's turn, two others wait, and the last of them has come
-- within the present second. So the queue lives for long enough already, and nobody hands the key on without asking.
if ARGV[5] == '' and ARGV[4] ~= '' and not permits then
  local lastTwo = redis.call('ZRANGE', KEYS[2], -2, -1, 'WITHSCORES')
  local last = tonumber(lastTwo[4])
  if last and last >= time[1] * 1000000 and last <= micros then
    local entry = {looks = now + soon, number = ARGV[3], ttl = ttl, kept = kept, channel = ARGV[4]}
    -- 0: it has a place, since it was sent again.
    if redis.call('HSET', KEYS[3], ARGV[2], textOf(entry)) == 1 then
      local ticket = string.format('%.0f', math.max(micros, last + 1))
      redis.call('ZADD', KEYS[2], ticket, ARGV[2])
      return {0, soon, ticket, 1}
    end
  end
end
-- Both are read before anything is written: either may be of another type.
local ticket = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[2]) or nil)
redis.call('HGET', KEYS[3], ARGV[2])
local new = not ticket
if new then
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
  ticket = tonumber(ARGV[5]) or math.max(micros, last + 1)
  redis.call('ZADD', KEYS[2], string.format('%.0f', ticket), ARGV[2])
  -- The process that has the lock hands it on without asking (scripts/lock/acquire.lua): no longer.
  local stay = redis.call('HGET', KEYS[3], 'stay')
  if stay then
    redis.pcall('HDEL', KEYS[3], 'stay')
    publish(stay, 'wanted')
  end
end
local wait = new and soon or lookAfter
local noted = wait
local entry = {looks = now + wait, number = ARGV[3], ttl = ttl, kept = kept, channel = ARGV[4]}
redis.call('HSET', KEYS[3], ARGV[2], textOf(entry))
front = redis.call('ZRANGE', KEYS[2], 0, 1)
-- Free, since its lease has ended, or somebody who knows nothing of queues has deleted it; or there are permits.
if permits then
  local _, fence = handOver(permits, ARGV[2])
  if fence then
    return {1, fence}
  end
end
local isFirst = first(now) == ARGV[2]
local isSecond = (front[2] or redis.call('ZRANGE', KEYS[2], 1, 1)[1]) == ARGV[2]
if mayRemove == 0 then
  wait = 1
elseif entry.channel == '' then
  wait = pollAfter
elseif isFirst then
  -- A sixteenth of the time that it has waited: where turns are long, it need not know of the end as soon.
  wait = math.min(math.max(pollAfter, math.floor((now - ticket / 1000) / 16)), soon)
end
-- The second one too, since the first may be dead.
if isFirst or isSecond then
  local remaining = permits and permits.limit and redis.call('ZRANGE', KEYS[1], 1, 1, 'WITHSCORES')[2] - now or
    redis.call('PTTL', KEYS[1])
  if remaining >= 0 then
    wait = math.min(wait, remaining + 1)
  end
end
if wait ~= noted then
  entry.looks = now + wait
  redis.call('HSET', KEYS[3], ARGV[2], textOf(entry))
end
redis.call('PEXPIRE', KEYS[2], lookAfter + grace)
redis.call('PEXPIRE', KEYS[3], lookAfter + grace)
return {0, wait, string.format('%.0f', ticket), new and 1 or 0}

-- Those who wait for the lock KEYS[1], first come, first served. KEYS[2] is a sorted set of their values by ticket, KEYS[3] a
-- hash of the same: "<looks> <number> <channel>". A waiter looks again by `looks`, in ms on this server's clock, and counts as
-- dead five seconds after that. Its number, which is another one at each look, is published to its channel to wake it up. A
-- waiter that no message can reach has an empty channel; it polls.
--
-- A lock that becomes free is offered to the first of them that is alive: KEYS[1] is its value and an '@' behind it, for a
-- second. An offer that lapses costs the others that second; who let it lapse may come back with its old ticket, to its old
-- place. An offer of all of the key is a lease already, which began after the look with the number that is published, and the
-- message says so, with its fence. That is from the counter KEYS[4] (scripts/lock/fence.lua), which is given when grants carry
-- one. To hold the key for longer, a claim has its lease renewed (scripts/lock/renew.lua), or asks for a new one
-- (scripts/lock/acquire.lua).
--
-- ARGV: the operation, the value of the caller, and for how many ms the counter is kept.
--   wait, waitShare
--            ARGV[4] its number, ARGV[5] its channel, ARGV[6] its ticket if it has one, else ''. Returns {1} when the key is
--            offered to it, or its own; else {0, ms until it should look again, its ticket, 1 if it was not in the queue}, or
--            {2, limit} when those who share the key have another limit.
--   release, releaseShare
--            takes it out of the queue, and frees the key if it holds it or is offered it. Returns 1 when it was so, else 0.
--   resize   gives a key that is shared ARGV[4] permits. Returns 1 when it is shared, else 0.
--   break    frees the key; unless ARGV[2] is '', only if that is the SHA-1 of its value, or that share of it. Returns 1 when
--            it was so, else 0.

-- A claim that has, or wants, a share of the lock (scripts/permit/permits.lua) says so by its value, and by its operations. It
-- is served in its turn when there are so many permits; an offer is then one to each of the first that fit.

local forShare = ARGV[1] == 'releaseShare' or ARGV[1] == 'waitShare' or ARGV[1] == 'resize'
local value = not forShare and redis.pcall('GET', KEYS[1])
-- A key of another type is somebody else's. Any other error says nothing about the key: it is raised.
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then
  return redis.call('GET', KEYS[1])
end
local own = value == ARGV[2] or value == ARGV[2] .. '@'

-- What most releases find: nobody waits.
if ARGV[1] == 'release' and redis.call('EXISTS', KEYS[2]) == 0 then
  return own and redis.call('DEL', KEYS[1]) or 0
end

local function isOfAnotherType(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'WRONGTYPE')
end

-- What isQueue() has read: the first two in the queue, and what is known of the caller if it waits.
local firstTwo, callerEntry

-- Keys of another type in its place are somebody else's, and no queue.
local function isQueue()
  firstTwo, callerEntry = redis.pcall('ZRANGE', KEYS[2], 0, 1), redis.pcall('HGET', KEYS[3], ARGV[2])
  return not isOfAnotherType(firstTwo) and not isOfAnotherType(callerEntry)
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
  if not hasQueue() then
    return released
  end
end

-- @include waiting.lua

-- @include ../lock/fence.lua

front = firstTwo or front

local offerFor, pollAfter, firstPollsAfter = 1000, 250, 1000

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

-- The message of an offer of all of the key: that it is a lease.
local function messageOf(number)
  return KEYS[4] and string.format('%s fence %.0f', number, drawFence(KEYS[4], ARGV[3], time, 1)) or number .. ' lease'
end

-- Offers all of the key to a waiter, and tells it, unless it `knows`. False when it cannot be told: then it is offered nothing.
local function offerKey(waiter, number, channel, knows)
  local isToBeTold = not knows and channel ~= ''
  -- With the message, the waiter has the key. So the message comes last, and nothing is published that is not so: what nobody
  -- hears here may be heard at another node of a cluster, or at a replica. No waiter has the number 0.
  if isToBeTold and (listeners(channel) or publish(channel, '0')) == 0 then
    return false
  end
  redis.call('SET', KEYS[1], waiter .. '@', 'PX', offerFor)
  if isToBeTold then
    publish(channel, messageOf(number))
  end
  return true
end

-- Offers it to a waiter, and tells it, unless it is `caller`. False when it cannot be told: then it is offered nothing.
local function offer(waiter, number, channel, permits, now, caller)
  local weight, limit = shareOf(waiter)
  if not weight then
    return offerKey(waiter, number, channel, waiter == caller)
  end
  if waiter ~= caller and not tell(channel, number) then
    return false
  end
  if not permits.limit then
    redis.call('DEL', KEYS[1])
  end
  permits.limit, permits.used = limit, permits.used + weight
  redis.call('ZADD', KEYS[1], limit * unit + permits.used, 'permits', now + offerFor, waiter .. '@')
  endWithTheLast(now)
  return true
end

local function fits(waiter, permits)
  local weight, limit = shareOf(waiter)
  return not permits.limit or limit == permits.limit and permits.used + weight <= limit
end

-- Offers a key, of which `permits` are taken, to the first one, or to all of the first that fit in. One of them that
-- is `caller` need not be told; if it is behind one that does not fit, that one has to be alive. Returns whether it was
-- offered, and whether to the caller.
local function handOver(now, permits, caller)
  local offered, toCaller = false, false
  local waiter, _, number, channel = first(now)
  while waiter do
    local fitsIn = fits(waiter, permits)
    if not fitsIn and (not caller or waiter == caller or isHeard(channel)) then
      break
    end
    remove(waiter)
    if fitsIn and offer(waiter, number, channel, permits, now, caller) then
      offered, toCaller = true, toCaller or waiter == caller
      if not permits.limit then
        break
      end
    end
    waiter, _, number, channel = first(now)
  end
  if offered then
    -- The one behind them looks when the offers have lapsed, or at once if only this call takes out no more.
    local isCut = mayRemove == 0
    mayRemove = math.max(mayRemove, 1)
    wakeFirst(now, isCut and 1 or offerFor + 1, caller)
  end
  return offered, toCaller
end

if ARGV[1] == 'release' then
  -- Who holds the lock is in the queue only after a reply that was lost.
  if not own or callerEntry then
    remove(ARGV[2])
  end
  if own then
    return handOver(now, {used = 0}) and 1 or redis.call('DEL', KEYS[1])
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
  if not (permits and handOver(now, permits)) and (waited or released == 0) then
    wakeFirst(now, pollAfter)
  end
  return released
end

if ARGV[1] == 'resize' then
  if not permits or not permits.limit then
    return 0
  end
  permits.limit = tonumber(ARGV[4])
  writeHead(permits)
  if hasQueue() and not handOver(now, permits) then
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
  shown = string.gsub(shown, '@$', '')
  if ARGV[2] ~= '' and permits and permits.limit then
    for _, sharer in ipairs(redis.call('ZRANGE', KEYS[1], 1, -1)) do
      sharer = string.gsub(sharer, '@$', '')
      if redis.sha1hex(sharer) == ARGV[2] then
        takeBack(sharer)
        if hasQueue() then
          remove(sharer)
          handOver(now, readPermits(now))
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
  return handOver(now, {used = 0}) and 1 or redis.call('DEL', KEYS[1])
end

if forShare and permits and permits.limit then
  own = redis.call('ZSCORE', KEYS[1], ARGV[2]) or redis.call('ZSCORE', KEYS[1], ARGV[2] .. '@')
  local _, limit = shareOf(ARGV[2])
  if not own and limit ~= permits.limit then
    remove(ARGV[2])
    -- The one behind it perhaps names the same one.
    wakeFirst(now, 1)
    return {2, permits.limit}
  end
end
if own then
  return {1}
end
-- Both are read before anything is written: either may be of another type.
local ticket = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[2]) or nil)
redis.call('HGET', KEYS[3], ARGV[2])
local new = not ticket
if new then
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
  ticket = tonumber(ARGV[6]) or math.max(micros, last + 1)
  redis.call('ZADD', KEYS[2], string.format('%.0f', ticket), ARGV[2])
  -- The process that has the lock hands it on without asking (scripts/lock/acquire.lua): no longer.
  local stay = redis.call('HGET', KEYS[3], 'stay')
  if stay then
    redis.pcall('HDEL', KEYS[3], 'stay')
    publish(stay, 'wanted')
  end
end
local wait = new and offerFor or lookAfter
local noted = wait
redis.call('HSET', KEYS[3], ARGV[2], entry(now + wait, ARGV[4], ARGV[5]))
front = redis.call('ZRANGE', KEYS[2], 0, 1)
-- Free, since its lease has ended, or somebody who knows nothing of queues has deleted it; or there are permits.
if permits then
  local _, toCaller = handOver(now, permits, ARGV[2])
  if toCaller then
    return {1}
  end
end
if forShare or permits then
  value = redis.pcall('GET', KEYS[1])
end
local isFirst = first(now) == ARGV[2]
local isSecond = (front[2] or redis.call('ZRANGE', KEYS[2], 1, 1)[1]) == ARGV[2]
local isOffered = type(value) == 'string' and string.sub(value, -1) == '@'
if mayRemove == 0 then
  wait = 1
elseif ARGV[5] == '' then
  wait = pollAfter
elseif isFirst then
  -- A sixteenth of the time that it has waited: where turns are long, it need not know of the end as soon.
  wait = math.min(math.max(pollAfter, math.floor((now - ticket / 1000) / 16)), firstPollsAfter)
end
-- The second one too, since the first may be dead.
if isFirst or isSecond or isOffered then
  local remaining = permits and permits.limit and redis.call('ZRANGE', KEYS[1], 1, 1, 'WITHSCORES')[2] - now or
    redis.call('PTTL', KEYS[1])
  if remaining >= 0 then
    wait = math.min(wait, remaining + 1)
  end
end
if wait ~= noted then
  redis.call('HSET', KEYS[3], ARGV[2], entry(now + wait, ARGV[4], ARGV[5]))
end
redis.call('PEXPIRE', KEYS[2], lookAfter + grace)
redis.call('PEXPIRE', KEYS[3], lookAfter + grace)
return {0, wait, string.format('%.0f', ticket), new and 1 or 0}

-- Takes KEYS[1] for the value ARGV[1] and ARGV[2] ms if it is free or holds that value already: by a request that was sent
-- twice, or from the queue (scripts/queue/queue.lua). Returns the fence of a new grant, which nobody mistakes for another
-- number; {1, fence} for any other, with 0 where grants carry none; or {0, remaining ms of the present holder}.
--
-- KEYS[2], the fence counter (fence.lua), is given when grants carry a fence. It is kept for ARGV[3] ms.
--
-- ARGV[4] turns, each with a fence, are asked for when the process would hand the lock on to so many callers of its own.
-- It gets one if somebody waits in the queue, which is KEYS[3] and KEYS[4], or if the fences would run ahead of the
-- clock; {1, fence, turns} says how many. Who begins to wait later is reported to the channel ARGV[5], unless that is ''.

-- First, so that a user without this right is refused before anything is done.
local time = KEYS[2] and redis.call('TIME')
local isTaken = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
local drawn = isTaken and KEYS[2] and redis.pcall('INCR', KEYS[2])
-- What most claims find.
if not ARGV[4] and type(drawn) == 'number' and drawn >= time[1] * 1000000 then
  return drawn
end

-- @framed
local wanted = tonumber(ARGV[4] or 1)

-- @include fence.lua

if not isTaken then
  -- pcall, because a key of another type is somebody else's lock and no fault.
  local value = redis.pcall('GET', KEYS[1])
  if value ~= ARGV[1] then
    return {0, redis.call('PTTL', KEYS[1])}
  end
  -- A claim that was granted before has one turn, even if it has lost its counter.
  wanted = 1
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  -- Nobody else was granted the key meanwhile, so the counter still is this grant's fence, or the last one of its turns.
  local fence = KEYS[2] and tonumber(redis.pcall('GET', KEYS[2]))
  if fence then
    return {1, fence}
  end
  drawn = KEYS[2] and redis.pcall('INCR', KEYS[2])
end
if not KEYS[2] then
  return {1, 0}
end
local fence = notBehind(drawn, KEYS[2], ARGV[3], time, wanted)
if not KEYS[3] or wanted == 1 then
  return {1, fence}
end
-- By pcall: keys of another type are no queue, so that there is one turn. A word that no waiter has, and a time that no process
-- takes.
local mayBeHandedOn = fence + wanted - 1 <= time[1] * 1000000 + time[2] and redis.pcall('EXISTS', KEYS[3]) == 0 and
  (ARGV[5] == '' or type(redis.pcall('HSET', KEYS[4], 'stay', ARGV[5])) == 'number' and
  redis.pcall('PEXPIRE', KEYS[4], 100) == 1)
if not mayBeHandedOn then
  return {1, fence, 1}
end
redis.call('SET', KEYS[2], fence + wanted - 1, 'PX', ARGV[3])
return {1, fence, wanted}

-- Takes KEYS[1] for the value ARGV[1] and ARGV[2] ms if it is free, holds that value already (a request that was sent
-- twice), or is offered to it (scripts/queue.lua). Returns {1, fence} or {0, remaining ms of the present holder}.
--
-- KEYS[2], the fence counter, is given when grants carry a fence. A fence is one more than the last one, and not less
-- than the server's present second in microseconds (below 2^53 until 2255). So a counter that was lost, or is behind
-- after a failover or a restart from a snapshot, does not repeat fences of earlier seconds while the server's clock
-- does not go back. The counter is kept ARGV[3] ms from the last time that it was set by the clock.

-- First, so that a user without this right is refused before anything is done.
local time = KEYS[2] and redis.call('TIME')

local function nextFence()
  local fence = tonumber(redis.pcall('INCR', KEYS[2])) or 0
  if fence < time[1] * 1000000 then
    fence = time[1] * 1000000 + time[2]
    redis.call('SET', KEYS[2], fence, 'PX', ARGV[3])
  end
  return fence
end

if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return {1, KEYS[2] and nextFence() or 0}
end
-- pcall, because a key of another type is somebody else's lock and no fault.
local value = redis.pcall('GET', KEYS[1])
if value == ARGV[1] .. '@' then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return {1, KEYS[2] and nextFence() or 0}
end
if value ~= ARGV[1] then
  return {0, redis.call('PTTL', KEYS[1])}
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if not KEYS[2] then
  return {1, 0}
end
-- Nobody else was granted the key meanwhile, so the counter still is this grant's fence.
return {1, tonumber(redis.pcall('GET', KEYS[2])) or nextFence()}

-- Lets KEYS[1] live for ARGV[2] ms more if it holds the value ARGV[1]; with ARGV[3] only if it would not live
-- as long anyway. Returns 1, or 0 when it does not hold it. An offer to that claim (scripts/queue/queue.lua) becomes its lease.
local value = redis.pcall('GET', KEYS[1])
-- A key of another type is somebody else's. Any other error says nothing about the key: it is raised.
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then
  return redis.call('GET', KEYS[1])
end
local isOffer = value == ARGV[1] .. '@'
if value ~= ARGV[1] and not isOffer then
  return 0
end
-- A write in any case: a server that may not write must not confirm the lease.
local length = ARGV[3] and math.max(redis.call('PTTL', KEYS[1]), ARGV[2]) or ARGV[2]
redis.call('PEXPIRE', KEYS[1], length)
if isOffer then
  -- Not first: a server that is full would refuse it.
  redis.call('SET', KEYS[1], ARGV[1], 'PX', length)
end
return 1

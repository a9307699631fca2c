-- Lets KEYS[1] live for ARGV[2] ms more if it holds the value ARGV[1]; with ARGV[3] only if it would not live
-- as long anyway. Returns 1, or 0 when it does not hold it.
local value = redis.pcall('GET', KEYS[1])
-- A key of another type is somebody else's. Any other error says nothing about the key: it is raised.
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then
  return redis.call('GET', KEYS[1])
end
if value ~= ARGV[1] then
  return 0
end
-- A write in any case: a server that may not write must not confirm the lease.
redis.call('PEXPIRE', KEYS[1], ARGV[3] and math.max(redis.call('PTTL', KEYS[1]), ARGV[2]) or ARGV[2])
return 1

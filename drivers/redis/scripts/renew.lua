-- Lets KEYS[1] live for ARGV[2] ms more if it holds the value ARGV[1]. Returns 1, or 0 when it does not.
local value = redis.pcall('GET', KEYS[1])
-- A key of another type is somebody else's. Any other error says nothing about the key: it is raised.
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then
  return redis.call('GET', KEYS[1])
end
if value == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0

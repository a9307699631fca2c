-- Deletes KEYS[1] if it holds the value ARGV[1]. Returns 1, or 0 otherwise.
local value = redis.pcall('GET', KEYS[1])
-- A key of another type is somebody else's. Any other error says nothing about the key: it is raised.
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then
  return redis.call('GET', KEYS[1])
end
if value == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0

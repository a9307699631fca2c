-- Returns {value of KEYS[1], its remaining ms, its fence counter KEYS[2]}, or nil when there is no such key. The
-- value is empty for a key of another type, the counter nil when there is none or it is of another type.
local value = redis.pcall('GET', KEYS[1])
if not value then
  return false
end
if type(value) == 'table' then
  -- Of a key with shares (scripts/permit/permits.lua), the one whose lease is the longest.
  value = redis.pcall('ZRANGE', KEYS[1], 0, 0)[1] == 'permits' and redis.call('ZRANGE', KEYS[1], -1, -1)[1] or ''
end
local counter = KEYS[2] and redis.pcall('GET', KEYS[2])
return {value, redis.call('PTTL', KEYS[1]), type(counter) == 'string' and counter}

-- Returns {value of KEYS[1], its remaining ms, its fence counter KEYS[2]}, or nil when there is no such key. The
-- value is empty for a key of another type, the counter nil when there is none.
local value = redis.pcall('GET', KEYS[1])
if not value then
  return false
end
if type(value) == 'table' then
  value = ''
end
return {value, redis.call('PTTL', KEYS[1]), KEYS[2] and redis.call('GET', KEYS[2]) or false}

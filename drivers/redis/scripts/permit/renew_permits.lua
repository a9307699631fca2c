-- Lets the share of KEYS[1] that the claim ARGV[1] has live for ARGV[2] ms more; with ARGV[3] only if it would not live as long
-- anyway. Returns 1, or 0 when it has none.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
-- A key of another type is somebody else's. Any other error says nothing about the key: it is raised.
if type(ends) == 'table' and not string.find(ends.err, 'WRONGTYPE') then
  return redis.call('ZSCORE', KEYS[1], ARGV[1])
end
ends = type(ends) == 'string' and tonumber(ends)
if not ends or ends <= now then
  return 0
end
local length = ARGV[3] and math.max(ends - now, ARGV[2]) or tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], now + length, ARGV[1])
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
redis.call('PEXPIRE', KEYS[1], math.min(last[2] - now, 100000000000))  -- as in permits.lua
return 1

-- Returns the value KEYS[1]. While there is none, whoever announces it (announce_value.lua) tells so for the next ARGV[3]
-- ms, 60,000 at most: the number ARGV[2] is published to the channel ARGV[1].
-- KEYS[2]: a sorted set of "<number> <channel>" by the ms, on this server's clock, at which each is forgotten.
local value = redis.call('GET', KEYS[1])
if value then
  return value
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[2] .. ' ' .. ARGV[1])
redis.call('PEXPIRE', KEYS[2], 60000)
return false

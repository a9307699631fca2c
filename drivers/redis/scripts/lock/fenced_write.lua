-- Sets KEYS[1] to ARGV[2], unless a fence higher than ARGV[1] has been seen for it: a former holder of the lock that
-- has not noticed its loss is refused. KEYS[2] remembers the highest fence seen; it must be in the same hash slot and
-- must not expire. Without ARGV[2] only claims the fence: a new holder does that before it reads, so that from then
-- on no earlier holder can change what it has read. Returns 1, or 0 when refused.
local seen = tonumber(redis.call('GET', KEYS[2])) or 0
local fence = tonumber(ARGV[1])
if fence < seen then
  return 0
end
redis.call('SET', KEYS[2], ARGV[1])
if ARGV[2] then
  redis.call('SET', KEYS[1], ARGV[2])
end
return 1

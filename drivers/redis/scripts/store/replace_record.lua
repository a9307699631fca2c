-- Writes the text ARGV[2] into the table KEYS[1] under the name ARGV[1] for ever, if what is there now is ARGV[3], or nothing
-- when that is not given. Returns 1, or 0 when it is something else. Used for records that do not end.
local time = redis.call('TIME')
local field = redis.call('HGET', KEYS[1], ARGV[1])
local text = field and string.match(field, '^%d+ %d+ (.*)$')
if text ~= (ARGV[3] or false) then
  return 0
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f 0 ', now) .. ARGV[2])
return 1

-- Writes the text ARGV[2] into the table KEYS[1] under the name ARGV[1], for ARGV[3] ms (0: for ever), if these are given.
-- Returns name, age in ms, text and the time of writing in ms of each record. A record is a field of a hash:
-- "<written at, ms> <ends at, ms> <text>".
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[1] then
  local ends = ARGV[3] == '0' and 0 or now + ARGV[3]
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f %.0f ', now, ends) .. ARGV[2])
end
local fields = redis.call('HGETALL', KEYS[1])
local found = {}
for i = 1, #fields, 2 do
  local since, ends, text = string.match(fields[i + 1], '^(%d+) (%d+) (.*)$')
  if ends and (ends == '0' or tonumber(ends) > now) then
    table.insert(found, fields[i])
    table.insert(found, math.max(now - since, 0))
    table.insert(found, text)
    table.insert(found, tonumber(since))
  else
    redis.call('HDEL', KEYS[1], fields[i])
  end
end
return found

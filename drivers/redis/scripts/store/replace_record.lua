-- Writes the text ARGV[2] into the table KEYS[1] under the name ARGV[1] for ever, if what is there now is ARGV[4] (ARGV[3] is
-- 1) or nothing (0), and if no record whose name begins with ARGV[5] has another name than those that follow it, when that is
-- given. Returns 1, or 0 when it does not write. Used for records that do not end.
local time = redis.call('TIME')
local field = redis.call('HGET', KEYS[1], ARGV[1])
local before, text = string.match(field or '', '^(%d+) %d+ (.*)$')
if text ~= (ARGV[3] == '1' and ARGV[4] or nil) then
  return 0
end
if ARGV[5] then
  local known = {}
  for i = 6, #ARGV do
    known[ARGV[i]] = true
  end
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, #ARGV[5]) == ARGV[5] and not known[fields[i]] then
      return 0
    end
  end
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stamp = math.max(now, (tonumber(before) or 0) + 1)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f 0 ', stamp) .. ARGV[2])
return 1

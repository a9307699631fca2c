-- Writes the text ARGV[2] into the table KEYS[1] under the name ARGV[1] for ever, if what is there now is ARGV[4] (ARGV[3] is
-- 1) or nothing (0), and, when pairs of a name and a stamp follow, if each other record has one of these names and that stamp,
-- or any if it is 0. Returns 1, or 0 when it does not write. Used for records that do not end.
local time = redis.call('TIME')
local field = redis.call('HGET', KEYS[1], ARGV[1])
local before, text = string.match(field or '', '^(%d+) %d+ (.*)$')
if text ~= (ARGV[3] == '1' and ARGV[4] or nil) then
  return 0
end
if ARGV[5] then
  local known = {[ARGV[1]] = '0'}
  for i = 5, #ARGV, 2 do
    known[ARGV[i]] = ARGV[i + 1]
  end
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local stamp = known[fields[i]]
    if stamp ~= '0' and stamp ~= string.match(fields[i + 1], '^%d+') then
      return 0
    end
  end
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stamp = math.max(now, (tonumber(before) or 0) + 1)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f 0 ', stamp) .. ARGV[2])
return 1

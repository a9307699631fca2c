-- Returns name, age in ms, text and stamp of each record in the table KEYS[1] (scripts/store/write_record.lua), and removes
-- those whose time is over.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
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

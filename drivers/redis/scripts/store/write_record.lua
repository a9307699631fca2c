-- Writes the text ARGV[2] into the table KEYS[1] under the name ARGV[1], for ARGV[3] ms (0: for ever). Returns name, age in ms,
-- text and stamp of each record that is asked for by the pairs of a name and a known stamp that follow, if it exists; without
-- its text if that is its stamp. A record is a field of a hash: "<written at, ms> <ends at, ms> <text>". The time of writing
-- is the stamp, and grows with each write.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local before = redis.call('HGET', KEYS[1], ARGV[1])
local stamp = math.max(now, before and tonumber(string.match(before, '^(%d+) ') or 0) + 1 or 0)
local ends = ARGV[3] == '0' and 0 or now + ARGV[3]
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f %.0f ', stamp, ends) .. ARGV[2])
local found = {}
for i = 4, #ARGV, 2 do
  local field = redis.call('HGET', KEYS[1], ARGV[i])
  local since, ends, text = string.match(field or '', '^(%d+) (%d+) (.*)$')
  if ends and (ends == '0' or tonumber(ends) > now) then
    table.insert(found, ARGV[i])
    table.insert(found, math.max(now - since, 0))
    table.insert(found, since == ARGV[i + 1] and '' or text)
    table.insert(found, tonumber(since))
  end
end
return found

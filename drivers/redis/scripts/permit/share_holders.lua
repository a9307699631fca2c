-- Returns the claims that have shares of KEYS[1], each followed by the ms that its lease has left.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.pcall('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
if found.err and not string.find(found.err, 'WRONGTYPE') then
  return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
end
local holders = {}
if found[1] == 'permits' then
  for index = 3, #found, 2 do
    -- Neither one that is only offered its share, nor one whose lease has ended, nor what somebody else has put in.
    if string.find(found[index], '^%x+@[^@]*@%d+/%d+$') and tonumber(found[index + 1]) > now then
      table.insert(holders, found[index])
      table.insert(holders, found[index + 1] - now)
    end
  end
end
return holders

-- Returns how many members KEYS[1] has from place ARGV[1] to ARGV[2] and, of those, the claims that have shares of it,
-- each followed by the ms that its lease has left.
local head = redis.pcall('ZRANGE', KEYS[1], 0, 0)
if head.err and not string.find(head.err, 'WRONGTYPE') then
  return head
end
if head[1] ~= 'permits' then
  return ofMaster({0})
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'WITHSCORES')
local reply = {#found / 2}
for index = 1, #found, 2 do
  -- Neither one whose lease has ended, nor what somebody else has put in.
  if string.find(found[index], '^%x+@[^@]*@%d+/%d+$') and tonumber(found[index + 1]) > now then
    table.insert(reply, found[index])
    table.insert(reply, found[index + 1] - now)
  end
end
return reply

-- Returns, of those who wait in a queue, first come first, the value in whose name each waits, and the µs that its ticket is old.
-- KEYS: the queue's order, and what is known of those in it (queue.lua). ARGV: how many to list.
local order = redis.pcall('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')
-- Keys of another type in its place are no queue.
if order.err then
  return string.find(order.err, 'WRONGTYPE') and {} or order
end
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]

-- @include waiting.lua

-- False when its process is known to have died, or has not looked when it should have.
local function isAlive(waiter)
  local found = redis.pcall('HGET', KEYS[2], waiter)
  if type(found) == 'table' and not string.find(found.err, 'WRONGTYPE') then
    redis.call('HGET', KEYS[2], waiter)  -- raises it
  end
  local looks, channel = string.match(type(found) == 'string' and found or '', '^(%d+) %d+ %d+ %d+ (.*)$')
  return looks and micros / 1000 <= looks + grace and isHeard(channel)
end

local waiting = {}
for index = 1, #order, 2 do
  if isAlive(order[index]) then
    table.insert(waiting, order[index])
    table.insert(waiting, math.floor(micros - order[index + 1]))
  end
end
return waiting

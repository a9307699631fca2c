-- A part of other scripts: the queue (queue.lua) whose order is KEYS[2], and what is known of those in it KEYS[3].
local lookAfter, grace = 4000, 5000
-- How many entries one call may take out: a server does nothing else meanwhile. A look that ends here is soon repeated.
local mayRemove = 100
-- The first ones in the queue, as far as they have been read.
local front = {}
-- What has been read of entries already, by waiter.
local read = {}
-- Who is to be taken out beside the next one, or nil.
local leaving

-- Whether it was in the queue. Not by pcall: who cannot take out an entry would find the same one again and again.
local function remove(waiter)
  local found = redis.call('ZREM', KEYS[2], waiter, leaving or waiter) > 0
  redis.call('HDEL', KEYS[3], waiter, leaving or waiter)
  mayRemove = mayRemove - 1
  if front[1] == waiter then
    table.remove(front, 1)
  else
    front = {}
  end
  return found
end

-- What is known of a waiter, or nil: when it looks again, its number at its last look, the ttl that it asks for, for how long
-- to keep the counter of its fence ('0': it wants no fence), and its channel.
local function entryOf(waiter)
  local found = read[waiter] or redis.call('HGET', KEYS[3], waiter) or ''
  read[waiter] = nil
  local looks, number, ttl, kept, channel = string.match(found, '^(%d+) (%d+) (%d+) (%d+) (.*)$')
  return looks and {looks = tonumber(looks), number = number, ttl = ttl, kept = kept, channel = channel}
end

local function textOf(entry)
  return string.format('%.0f %s %s %s %s', entry.looks, entry.number, entry.ttl, entry.kept, entry.channel)
end

-- A channel with a hash tag is one of the lock's slot, on a cluster: other nodes need not hear of it.
local function isOfSlot(channel)
  return string.find(channel, '{', 1, true)
end

local function publish(channel, text)
  return redis.pcall(isOfSlot(channel) and 'SPUBLISH' or 'PUBLISH', channel, text)
end

-- False when nobody listens: the process has died, or has lost its connection and will look when it has another one. By
-- pcall, since a user who may not publish still hands over: the first one finds by looking that it has the key.
local function tell(channel, text)
  return channel == '' or publish(channel, text) ~= 0
end

-- How many listen here. A user who may not ask does not know.
local function listeners(channel)
  local listening = redis.pcall('PUBSUB', isOfSlot(channel) and 'SHARDNUMSUB' or 'NUMSUB', channel)
  return not listening.err and listening[2] or nil
end

-- As tell(), without a word to anybody.
local function isHeard(channel)
  return channel == '' or listeners(channel) ~= 0
end

-- The first that is alive at `now`, in ms, with what is known of it. Those before it are taken out. Nil when there is nobody,
-- or nobody has been found yet.
local function first(now)
  while mayRemove > 0 do
    local waiter = front[1] or redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    if not waiter then
      return nil
    end
    local entry = entryOf(waiter)
    if entry and entry.looks > now + lookAfter then
      -- This server's clock has been set back. Who is alive looks by its own clock.
      entry.looks = now + lookAfter
      redis.pcall('HSET', KEYS[3], waiter, textOf(entry))
    end
    if entry and now <= entry.looks + grace then
      return waiter, entry
    end
    remove(waiter)
  end
end

-- Makes the first one look within `length` ms. `caller`, who is asking now, need not be told.
local function wakeFirst(now, length, caller)
  local waiter, entry = first(now)
  while waiter and waiter ~= caller and entry.looks > now + length do
    if tell(entry.channel, entry.number .. ' ' .. length) then
      entry.looks = now + length
      -- By pcall: the lock has perhaps changed hands, and that must be reported.
      redis.pcall('HSET', KEYS[3], waiter, textOf(entry))
      return
    end
    remove(waiter)
    waiter, entry = first(now)
  end
end

-- Keeps the value ARGV[1] under KEYS[1] for ARGV[2] ms, and tells those who wait for it: KEYS[2] (await_value.lua).
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])

-- @include ../queue/waiting.lua

-- By pcall: the value is kept. Who is not told finds it by looking.
local asking = redis.pcall('ZRANGE', KEYS[2], 0, -1)
for _, each in ipairs(asking) do
  local number, channel = string.match(each, '^(%d+) (.*)$')
  publish(channel, number)
end
redis.pcall('DEL', KEYS[2])
return redis.status_reply('OK')

-- Returns the commands that the user may not use though locks need them, such as '+zadd'. Their keys are tried too: a server
-- checks all of KEYS before it runs a script. KEYS[1] is used for this alone, and is gone afterwards.
local missing = {}

local function try(command, ...)
  local reply = redis.pcall(command, ...)
  local fault = type(reply) == 'table' and reply.err or ''
  -- Up to Redis 7.0, and from 7.2 on.
  if string.find(fault, "user executing the script can't run", 1, true) or string.find(fault, 'permissions to run', 1, true) then
    table.insert(missing, '+' .. string.lower(command))
  end
end

local key = KEYS[1]
try('TIME')
try('SET', key, 'x', 'PX', 1000)
-- On a plain text, what is for another type is refused in any case, and changes nothing.
try('INCR', key)
try('GET', key)
try('PTTL', key)
try('PEXPIRE', key, 1000)
try('EXISTS', key)
try('ZADD', key, 1, 'x')
try('ZRANGE', key, 0, 0)
try('ZREM', key, 'x')
try('ZSCORE', key, 'x')
try('HGET', key, 'x')
try('HSET', key, 'x', 'x')
try('HDEL', key, 'x')
try('DEL', key)
return missing

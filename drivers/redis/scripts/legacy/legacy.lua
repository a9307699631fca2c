-- One operation on the lock KEYS[1] of clients that keep it as "<unix seconds at which it ends>". We write
-- "<unix seconds>:<token>", which they read in the same way, and know our own by what follows the 10 digits. With
-- KEYS[2] we write digits only, and the whole value to that companion: then digits are ours while they are those of the
-- companion and still have a TTL, since what a legacy client writes has none.
--
-- ARGV: the operation, what follows the digits in our value, the ttl in ms, a value that the caller saw to be expired or ''.
--   acquire  writes KEYS[1] if it is free, ours, or still what the caller saw
--   renew    writes it if it is ours
--   release  deletes it if it is ours
--   break    deletes it if the SHA-1 of its grant, which is the value without the seconds before a token, is ARGV[4]
--   look     does nothing
-- Returns {1} when done, else {0, type, value (256 bytes at most), PTTL, the server's time in ms}.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ttl = redis.call('PTTL', KEYS[1])
local value = redis.pcall('GET', KEYS[1])
local kind = value and 'string' or 'none'
if type(value) == 'table' then
  if not string.find(value.err, 'WRONGTYPE') then
    return redis.call('GET', KEYS[1])  -- says nothing about the key: it is raised
  end
  kind = redis.pcall('TYPE', KEYS[1]).ok or 'unknown'
  value = false
end
if value and KEYS[2] and ttl >= 0 then
  local whole = redis.call('GET', KEYS[2])
  value = whole and string.sub(whole, 1, 10) == value and whole or value
end
local ours = value and string.sub(value, 11) == ARGV[2]

if ARGV[1] == 'break' then
  local shown = string.sub(value or '', 1, 256)
  local grant = string.sub(shown, 11, 11) == ':' and string.sub(shown, 11) or shown
  if kind ~= 'none' and redis.sha1hex(grant) == ARGV[4] then
    redis.call('DEL', unpack(KEYS))
    return {1}
  end
end
if ours and ARGV[1] == 'release' then
  redis.call('DEL', unpack(KEYS))
  return {1}
end
-- As far as the caller has seen it: a lock's seconds and its token are in there.
local isAsSeen = value and ARGV[4] ~= '' and string.sub(value, 1, 256) == ARGV[4]
local claimed = ARGV[1] == 'acquire' and (kind == 'none' or isAsSeen)
if claimed or ours and (ARGV[1] == 'acquire' or ARGV[1] == 'renew') then
  -- Rounded up and one second more: clients whose clock is ahead by up to that wait for us all the same. The key ends
  -- half a second after that, before legacy clients think that it has expired and use GETSET.
  local ends = math.ceil((now + 1 + ARGV[3]) / 1000) + 1
  local px = ends * 1000 + 500 - now
  local digits = string.format('%.0f', ends)
  if KEYS[2] then
    redis.call('SET', KEYS[2], digits .. ARGV[2], 'PX', px)
    redis.call('SET', KEYS[1], digits, 'PX', px)
  else
    redis.call('SET', KEYS[1], digits .. ARGV[2], 'PX', px)
  end
  return {1}
end
return ofMaster({0, kind, string.sub(value or '', 1, 256), ttl, now})

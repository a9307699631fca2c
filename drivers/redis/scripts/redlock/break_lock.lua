-- Deletes KEYS[1] if ARGV[1] is the SHA-1 of the value that holder.lua returns for it. Returns 1, or 0 when it is not.
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  value = ''
end
if value and redis.sha1hex(value) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0

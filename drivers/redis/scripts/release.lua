-- Deletes KEYS[1] if it holds the value ARGV[1]. Returns 1, or 0 when it does not.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0

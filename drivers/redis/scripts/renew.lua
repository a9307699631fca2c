-- Lets KEYS[1] live for ARGV[2] ms more if it holds the value ARGV[1]. Returns 1, or 0 when it does not.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0

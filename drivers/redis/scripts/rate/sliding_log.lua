-- A part of other scripts: the list of the times of a sliding window's units, oldest first, at the time `now` in µs.
local function stampAt(key, index)
  return tonumber(redis.call('LINDEX', key, index)) or redis.call('GET', key)
end

-- How many units of a sliding window count no more, and how many do.
local function logAt(key, period)
  local length, outside = redis.call('LLEN', key), 0
  while outside < length and stampAt(key, outside) <= now - period do
    outside = outside + 1
  end
  return outside, length - outside
end

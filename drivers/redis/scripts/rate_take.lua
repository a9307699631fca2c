-- Charges KEYS[i] as the i-th group of arguments says: all of them or, when one refuses, none. ARGV[1] is 'take', or
-- 'peek' to charge nothing. The groups have seven arguments each:
--   bucket:         'b', times, cost as µs and parts, room as µs and parts, parts in a µs
--   fixed window:   'w', times, cost, limit, period in µs, 0, 0
--   sliding window: 'l', times, cost, limit, period in µs, 0, 0
-- Each of `times` callers wants the cost; where there is one key, as many are granted as fit. A cost of 0 always fits.
--
-- Returns {now, and for each key: granted, first, second, leaves first}: the server's time in µs, and the state that
-- is left, as rate_rules.h has it. All numbers stay below 2^53, which the client has checked for every law.
--
-- A bucket is kept as the time at which it is full again, "µs" or "µs:parts"; a fixed window as "start:used"; a
-- sliding window as the list of the times of its units. Each expires when it means nothing any more, not before.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function bucketAt(key, parts)
  local state = redis.call('GET', key)
  local full, rest = tonumber(state or 0), 0
  if not full then
    full, rest = string.match(state, '^(%d+):(%d+)$')
    full, rest = tonumber(full), tonumber(rest)
    if rest >= parts then
      full, rest = full + 1, 0
    end
  end
  if full < now then
    return now, 0
  end
  return full, rest
end

local function windowAt(key, period)
  local start = now - now % period
  local kept, used = string.match(redis.call('GET', key) or '0:0', '^(%d+):(%d+)$')
  kept = kept - kept % period
  if kept < start then
    return start, 0
  end
  return kept, tonumber(used)
end

-- How many units of a sliding window count no more, and how many do.
local function logAt(key, period)
  local length, outside = redis.call('LLEN', key), 0
  while outside < length and tonumber(redis.call('LINDEX', key, outside)) <= now - period do
    outside = outside + 1
  end
  return outside, length - outside
end

local function timesIn(times, cost, left)
  if cost == 0 then
    return times
  end
  return math.min(times, math.floor(math.max(left, 0) / cost))
end

-- The state before and after what is granted; for sliding windows, of `first` what is outside.
local granted, first, second, firstAfter, secondAfter = {}, {}, {}, {}, {}
local allFit = true
for index, key in ipairs(KEYS) do
  local at = 7 * index - 5
  local kind, times, cost = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local third, fourth = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local fits = 0
  if kind == 'b' then
    local costParts, room, roomParts, parts = third, fourth, tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
    local full, rest = bucketAt(key, parts)
    first[index], second[index] = full, rest
    while fits < times do
      local nextFull, nextRest = full + cost, rest + costParts
      if nextRest >= parts then
        nextFull, nextRest = nextFull + 1, nextRest - parts
      end
      local level = nextFull - now
      if (level > room or level == room and nextRest > roomParts) and cost + costParts > 0 then
        break
      end
      full, rest, fits = nextFull, nextRest, fits + 1
    end
    firstAfter[index], secondAfter[index] = full, rest
  else
    if kind == 'w' then
      first[index], second[index] = windowAt(key, fourth)
    else
      first[index], second[index] = logAt(key, fourth)
    end
    fits = timesIn(times, cost, third - second[index])
    firstAfter[index], secondAfter[index] = first[index], second[index] + fits * cost
  end
  granted[index] = fits
  allFit = allFit and fits == times
end

local function keep(key, text, expiry)
  redis.call('SET', key, text)
  redis.call('PEXPIREAT', key, math.ceil(expiry / 1000))
end

-- Writes the units that have come in, at one time that is not before the newest: the clock may have gone back.
-- Returns when they all have left.
local function append(key, outside, units, period)
  redis.call('LTRIM', key, outside, -1)
  local stamp = math.max(now, tonumber(redis.call('LINDEX', key, -1) or 0))
  local stamps = {}
  for unit = 1, units do
    stamps[unit] = stamp
  end
  redis.call('RPUSH', key, unpack(stamps))
  return stamp + period
end

local charges = ARGV[1] == 'take' and (allFit or #KEYS == 1)
local reply = {now}
for index, key in ipairs(KEYS) do
  local at, kind, expiry = 7 * index - 5, ARGV[7 * index - 5], nil
  if charges and (firstAfter[index] ~= first[index] or secondAfter[index] ~= second[index]) then
    local full, rest = firstAfter[index], secondAfter[index]
    if kind == 'w' then
      keep(key, string.format('%.0f:%.0f', full, rest), full + tonumber(ARGV[at + 4]))
    elseif kind == 'l' then
      expiry = append(key, full, rest - second[index], tonumber(ARGV[at + 4]))
      full = 0
    elseif rest == 0 then
      keep(key, full, full)
    else
      keep(key, string.format('%.0f:%.0f', full, rest), full + 1)
    end
    first[index], second[index] = full, rest
  end
  local leavesFirst = 0
  if kind == 'l' then
    local outside, used = first[index], second[index]
    local tooMany = used + ARGV[at + 2] - ARGV[at + 3]
    if tooMany > 0 then
      leavesFirst = tonumber(redis.call('LINDEX', key, outside + tooMany - 1))
    end
    first[index], second[index] = used, used > 0 and tonumber(redis.call('LINDEX', key, -1)) or 0
  end
  if expiry then  -- last of all: on a server that was stopped just now the key may go at once
    redis.call('PEXPIREAT', key, math.ceil(expiry / 1000))
  end
  local place = 4 * index - 2
  reply[place], reply[place + 1] = granted[index], first[index]
  reply[place + 2], reply[place + 3] = second[index], leavesFirst
end
return reply

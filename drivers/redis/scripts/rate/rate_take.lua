-- Charges KEYS[i] as the i-th group of arguments says. ARGV[1] is 'take': all of them or, when one refuses, none; 'each':
-- every one on its own; or 'peek' to charge nothing. The groups have seven arguments each:
--   bucket:         'b', times, cost as µs and parts, room as µs and parts, parts in a µs
--   fixed window:   'w', times, cost, limit, period in µs, 0, 0
--   sliding window: 'l', times, cost, limit, period in µs, 0, 0
-- Each of `times` callers wants the cost; with 'each', as many are granted as fit. A cost of 0 always fits.
--
-- Returns {now, and for each key: granted, first, second, leaves first}: the server's time in µs, and the state that
-- is left, as rate_rules.h has it. All numbers stay below 2^53, which the client has checked for every law. With 'each',
-- an error in place of `granted` is that key's alone.
--
-- A bucket is kept as the time at which it is full again, "µs" or "µs:parts"; a fixed window as "start:used"; a
-- sliding window as the list of the times of its units. Each expires when it means nothing any more, not before.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- What no limit has written is refused as a key of another type is: the command that does not fit it says so.
local function refuseText(key)
  redis.call('LLEN', key)
end

local function bucketAt(key, parts)
  local full, rest = string.match(redis.call('GET', key) or '0', '^(%d+):?(%d*)$')
  if not full then
    refuseText(key)
  end
  full, rest = tonumber(full), tonumber(rest) or 0
  if rest >= parts then
    full, rest = full + 1, 0
  end
  if full < now then
    return now, 0
  end
  return full, rest
end

local function windowAt(key, period)
  local start = now - now % period
  local kept, used = string.match(redis.call('GET', key) or '0:0', '^(%d+):(%d+)$')
  if not kept then
    refuseText(key)
  end
  kept = kept - kept % period
  if kept < start then
    return start, 0
  end
  return kept, tonumber(used)
end

-- @include sliding_log.lua

-- The quotient of whole numbers below 2^53 never rounds up to a whole one.
local function timesIn(times, cost, left)
  if cost == 0 then
    return times
  end
  return math.min(times, math.floor(math.max(left, 0) / cost))
end

-- How many of those who want it are granted, and the state before and after; for sliding windows, what is outside and what
-- counts.
local function decide(index, key)
  local at = 7 * index - 5
  local kind, times, cost = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local third, fourth = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  if kind ~= 'b' then
    local readState = kind == 'w' and windowAt or logAt
    local start, used = readState(key, fourth)
    local fits = timesIn(times, cost, third - used)
    return fits, start, used, start, used + fits * cost
  end
  local costParts, room, roomParts, parts = third, fourth, tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  local first, second = bucketAt(key, parts)
  local full, rest, fits = first, second, 0
  if costParts == 0 and rest == 0 then
    fits = timesIn(times, cost, room - (full - now))
    return fits, first, second, full + fits * cost, rest
  end
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
  return fits, first, second, full, rest
end

local function keep(key, text, expiry)
  redis.call('SET', key, text)
  redis.call('PEXPIREAT', key, math.ceil(expiry / 1000))
end

-- Writes the units that have come in, at one time that is not before the newest: the clock may have gone back.
-- Returns when they all have left.
local function append(key, outside, units, period)
  redis.call('LTRIM', key, outside, -1)
  local stamp = redis.call('LLEN', key) == 0 and now or math.max(now, stampAt(key, -1))
  local stamps = {}
  for unit = 1, units do
    stamps[unit] = stamp
  end
  redis.call('RPUSH', key, unpack(stamps))
  return stamp + period
end

local reply, written = {now}, false

-- Answers for a key what was decided, and writes it if it `charges`.
local function record(index, key, charges, fits, first, second, full, rest)
  local at, kind, expiry = 7 * index - 5, ARGV[7 * index - 5], nil
  if charges and (full ~= first or rest ~= second) then
    if kind == 'w' then
      keep(key, string.format('%.0f:%.0f', full, rest), full + tonumber(ARGV[at + 4]))
    elseif kind == 'l' then
      expiry = append(key, full, rest - second, tonumber(ARGV[at + 4]))
      full = 0
    elseif rest == 0 then
      keep(key, full, full)
    else
      keep(key, string.format('%.0f:%.0f', full, rest), full + 1)
    end
    first, second, written = full, rest, true
  end
  local leavesFirst = 0
  if kind == 'l' then
    local outside, used = first, second
    local tooMany = used + ARGV[at + 2] - ARGV[at + 3]
    if tooMany > 0 then
      leavesFirst = stampAt(key, outside + tooMany - 1)
    end
    first, second = used, used > 0 and stampAt(key, -1) or 0
  end
  if expiry then  -- last of all: on a server that was stopped just now the key may go at once
    redis.call('PEXPIREAT', key, math.ceil(expiry / 1000))
  end
  local place = 4 * index - 2
  reply[place], reply[place + 1], reply[place + 2], reply[place + 3] = fits, first, second, leavesFirst
end

local function charge(index, key)
  record(index, key, true, decide(index, key))
end

if ARGV[1] == 'each' then
  for index, key in ipairs(KEYS) do
    local done, fault = pcall(charge, index, key)
    if not done then
      record(index, key, false, type(fault) == 'table' and fault or {err = fault}, 0, 0, 0, 0)
    end
  end
  return written and reply or ofMaster(reply)
end
local decided, allFit = {}, true
for index, key in ipairs(KEYS) do
  decided[index] = {decide(index, key)}
  allFit = allFit and decided[index][1] == tonumber(ARGV[7 * index - 4])
end
for index, key in ipairs(KEYS) do
  record(index, key, ARGV[1] == 'take' and allFit, unpack(decided[index]))
end
return written and reply or ofMaster(reply)

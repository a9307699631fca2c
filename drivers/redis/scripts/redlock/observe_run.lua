-- For how many ms more this start of the server has to be observed before the node may vote: 0 when it may, -1 when it is none of
-- those that the caller has met. Clients measure that on the boot clocks of their machines, since the server's own uptime follows
-- its wall clock. What they have seen is kept here for those that come later, until the server starts again.
--
-- KEYS[1]: "<run_id> <ms for which somebody has observed that start> <machine>=<ms> …", with the time on each machine's boot clock
-- at which the first client there met it.
-- ARGV: the caller's machine, the time now on its boot clock and for how long a start has to be observed, in ms, then each start
-- that it has met: run_id, and when on the same clock.
local run = string.match(redis.call('INFO', 'server'), '\nrun_id:(%x+)')
local now, length, met = tonumber(ARGV[2]), tonumber(ARGV[3]), nil
for index = 4, #ARGV, 2 do
  if ARGV[index] == run then
    met = tonumber(ARGV[index + 1])
  end
end
if not met then
  return -1
end

local of, observed, machines = string.match(redis.call('GET', KEYS[1]) or '', '^(%x+) (%d+)(.*)$')
if of ~= run then
  observed, machines = 0, ''
end
if tonumber(observed) >= length then
  return 0
end
local others, count = '', 0
for machine, since in string.gmatch(machines, ' ([^ =]+)=(%d+)') do
  if machine == ARGV[1] then
    met = math.min(met, tonumber(since))
  elseif count < 100 then
    others, count = others .. ' ' .. machine .. '=' .. since, count + 1
  end
end
local left = math.max(length - (now - met), 0)
if left == 0 then
  observed = length
end
local own = ARGV[1] ~= '' and string.format(' %s=%.0f', ARGV[1], met) or ''
redis.call('SET', KEYS[1], string.format('%s %.0f', run, observed) .. own .. others)
return left

-- A part of other scripts: counters of fences.
--
-- A fence is one more than the last one, and not less than the server's present second in microseconds (below 2^53 until
-- 2255). So a counter that was lost, or is behind after a failover or a restart from a snapshot, does not repeat fences of
-- earlier seconds while the server's clock does not go back. The counter is kept for `kept` ms from the last time that it was
-- set, not increased.

-- The fence for which `counter` has drawn a number; that is what INCR has said, perhaps an error. `time` is what TIME says. A
-- counter that is behind is set so that it may draw so many `turns` before it runs ahead of the clock.
local function notBehind(drawn, counter, kept, time, turns)
  local second = time[1] * 1000000
  local fence = tonumber(drawn) or 0
  if fence < second then
    fence = math.max(second, second + time[2] - turns + 1)
    redis.call('SET', counter, fence, 'PX', kept)
  end
  return fence
end

-- The next fence of `counter`.
local function drawFence(counter, kept, time)
  return notBehind(redis.pcall('INCR', counter), counter, kept, time, 1)
end

-- Takes keys in their order until one is busy, each as acquire.lua does, which is the function acquire(KEYS, ARGV)
-- here. Returns its replies.
--
-- ARGV[1] and ARGV[2] are the length of the leases and that for which fence counters are kept, and then comes a value
-- for each key. KEYS has as many of each key's own as acquire.lua wants.

local replies, ofEach = {}, #KEYS / (#ARGV - 2)
for index = 1, #ARGV - 2 do
  local last = index * ofEach
  replies[index] = acquire({unpack(KEYS, last - ofEach + 1, last)}, {ARGV[index + 2], ARGV[1], ARGV[2]})
  if type(replies[index]) == 'table' and replies[index][1] == 0 then
    break
  end
end
return replies

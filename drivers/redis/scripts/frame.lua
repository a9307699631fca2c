-- Encloses every script, which takes the place of the line after "local function run".

-- For an answer without a write. A server that has become a replica refuses only what writes, and what it does not find says
-- nothing about the locks: it has to be asked.
local function ofMaster(reply)
  if string.find(redis.call('INFO', 'replication'), '\nrole:slave', 1, true) then
    return redis.error_reply('READONLY this server is a replica')
  end
  return reply
end

local function run(KEYS, ARGV)
-- @script
end

local reply = run(KEYS, ARGV)
if reply == 0 or not reply then
  return ofMaster(reply)
end
return reply

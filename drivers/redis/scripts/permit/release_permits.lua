-- Takes the share of KEYS[1] from the claim ARGV[1], for as long as the queue cannot be reached. Returns 1, or 0 when it has
-- none.
-- @include permits.lua

return takeBack(ARGV[1])

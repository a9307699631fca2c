#pragma once

#include <optional>

#include "lockkeeper/driver/driver.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

// What the replies of the scripts for locks mean. An error reply is none of these.

/// 1 or 0: done or not.
inline bool isFlag(const Reply& reply) { return reply.isInteger(0) || reply.isInteger(1); }

/// Of scripts/acquire.lua: a pair, of which the first number is 1 (granted) or 0 (busy); after a grant, the
/// turns may follow.
bool isAcquireReply(const Reply& reply);

/// Of scripts/permit/acquire_permits.lua: also {2, limit}, when others have another limit.
bool isPermitReply(const Reply& reply);

/// How long somebody else's key will live; empty when it does not end, or is gone already.
std::optional<std::chrono::milliseconds> remainingIn(const Reply& pttl);

/// Of scripts/holder.lua.
bool isHolderReply(const Reply& reply);
/// Empty when the key is free. Its owner is empty for a foreign client, and it has a fence for ours only.
std::optional<Holder> holderIn(const Reply& holderReply);

}  // namespace lockkeeper::redis

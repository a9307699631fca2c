#pragma once

#include <optional>

#include "lockkeeper/driver/driver.h"
#include "store/redis_store.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

// What the replies of the scripts for locks mean. An error reply is none of these.

/// 1 or 0: done or not.
inline bool isFlag(const Reply& reply) { return reply.isInteger(0) || reply.isInteger(1); }

/// Of scripts/lock/acquire.lua: the fence of a new grant; else a pair, of which the first number is 1
/// (granted) or 0 (busy); after a grant, the turns may follow.
bool isAcquireReply(const Reply& reply);

/// What such a reply grants. A fence by itself is above all that other replies say, and a pair's first number
/// tells a grant from a refusal, so that none can be taken for another. `stay` becomes that of a grant for
/// several turns, of which `turns` were asked for. Throws as RedisStore::refuse() and unexpected().
AcquireResult acquireResult(RedisStore& store, const Request& request, const Reply& reply,
                            std::chrono::milliseconds ttl, std::uint32_t turns = 1,
                            std::chrono::milliseconds stay = {});

/// Of scripts/permit/acquire_permits.lua: also {2, limit}, when others have another limit.
bool isPermitReply(const Reply& reply);

/// How long somebody else's key will live; empty when it does not end, or is gone already.
std::optional<std::chrono::milliseconds> remainingIn(const Reply& pttl);

/// Of scripts/lock/holder.lua.
bool isHolderReply(const Reply& reply);
/// Empty when the key is free. Its owner is empty for a foreign client, and it has a fence for ours only.
std::optional<Holder> holderIn(const Reply& holderReply);

}  // namespace lockkeeper::redis

#include "lock/lock_replies.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "lock/lock_value.h"
#include "lockkeeper/internal/whole_number.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

// Fences begin with the server's clock, in µs since 1970. This was in January of that year, and is no count
// and no length of a lease.
constexpr std::int64_t leastFence = 1'000'000'000'000;

}  // namespace

bool isAcquireReply(const Reply& reply) {
  if (reply.kind == ReplyKind::integer) return reply.integer >= leastFence;
  const auto isInteger = [](const Reply& item) { return item.kind == ReplyKind::integer; };
  if (!std::all_of(reply.items.begin(), reply.items.end(), isInteger)) return false;
  if (reply.items.size() == 3) return reply.items[0].isInteger(1) && reply.items[2].integer >= 1;
  return reply.items.size() == 2 && isFlag(reply.items[0]);
}

AcquireResult acquireResult(RedisStore& store, const Request& request, const Reply& reply,
                            std::chrono::milliseconds ttl, std::uint32_t turns,
                            std::chrono::milliseconds stay) {
  if (reply.kind == ReplyKind::error) store.refuse(reply);
  if (!isAcquireReply(reply)) store.unexpected(request);
  const bool isFence = reply.kind == ReplyKind::integer;
  if (!isFence && reply.items[0].isInteger(0)) return Busy{remainingIn(reply.items[1])};
  const std::int64_t fence = isFence ? reply.integer : reply.items[1].integer;
  const bool withFence = store.options().fence;
  if (withFence != (fence > 0)) store.unexpected(request);
  if (!withFence) return Granted{request.sentAt(), ttl, std::nullopt};
  Granted granted{request.sentAt(), ttl, static_cast<Fence>(fence)};
  if (reply.items.size() <= 2) return granted;
  if (turns == 1 || reply.items[2].integer > turns) store.unexpected(request);
  granted.localHolders = static_cast<std::uint32_t>(reply.items[2].integer);
  granted.handOverFor = stay;
  return granted;
}

bool isPermitReply(const Reply& reply) {
  if (reply.items.size() == 2 && reply.items[0].isInteger(2)) {
    const Reply& limit = reply.items[1];
    return limit.kind == ReplyKind::integer && limit.integer >= 1 && limit.integer <= Share::most;
  }
  return reply.items.size() == 2 && isAcquireReply(reply);
}

std::optional<std::chrono::milliseconds> remainingIn(const Reply& pttl) {
  if (pttl.kind != ReplyKind::integer || pttl.integer < 0) return std::nullopt;
  return std::chrono::milliseconds(pttl.integer);
}

bool isHolderReply(const Reply& reply) {
  return reply.kind == ReplyKind::nil ||
         (reply.items.size() == 3 && reply.items[1].kind == ReplyKind::integer);
}

std::optional<Holder> holderIn(const Reply& holderReply) {
  if (holderReply.kind == ReplyKind::nil) return std::nullopt;
  const std::string_view value = holderReply.items[0].text;
  const std::optional<ClaimText> text = textIn(value);
  Holder holder;
  if (text) holder.owner = text->owner;
  holder.remaining = remainingIn(holderReply.items[1]);
  holder.endless = holderReply.items[1].isInteger(-1);  // what PTTL says of a key without a TTL
  holder.grantId = sha1(value);
  if (text) holder.share = text->share;
  if (text && holderReply.items[2].kind == ReplyKind::bulk)
    holder.fence = wholeNumber<Fence>(holderReply.items[2].text);
  return holder;
}

}  // namespace lockkeeper::redis

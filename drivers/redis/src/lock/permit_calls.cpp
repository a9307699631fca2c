#include "lock/permit_calls.h"

#include <array>
#include <span>
#include <string>
#include <unordered_set>

#include "lock/lock_replies.h"
#include "lock/lock_value.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/permit/share.h"
#include "store/companion_key.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

using std::chrono::milliseconds;

namespace {

// How many members of a shared key one reply is about, with at most two elements for each.
constexpr std::int64_t membersAtOnce = 10'000;
static_assert(2 * membersAtOnce + 1 <= static_cast<std::int64_t>(maxReplyElements));

// How many of them the next reply is about again. A holder moves forward by one place when another one in
// front of it leaves or renews, and must not be missed.
constexpr std::int64_t membersReadTwice = 1'000;

}  // namespace

AcquireResult PermitCalls::acquire(const AcquireRequest& request, Request& wire) {
  const Claim& claim = request.claim;
  const bool withFence = store_.options().fence;
  const ComposedText value = lockValue(claim);
  const std::string ttl = std::to_string(request.ttl.count());
  const std::string weight = std::to_string(claim.share->weight);
  const std::string limit = std::to_string(claim.share->limit);
  const std::string kept = std::to_string(store_.options().fenceKept.count());
  const ComposedText queue = companionKey(claim.key, "queue");
  const ComposedText waiters = companionKey(claim.key, "waiters");
  const ComposedText counter = companionKey(claim.key, "fence");
  const std::array<std::string_view, 4> keys = {claim.key, queue, waiters, counter};
  const std::array<std::string_view, 6> arguments = {value, ttl,  weight,
                                                     limit, kept, request.ahead ? "ahead" : ""};
  store_.executeScripts(wire, request.deadline, [&](Request& call, Script::By by) {
    Script::acquirePermits().addTo(call, by, std::span(keys).first(withFence ? 4 : 3), arguments);
  });

  const Reply& reply = wire.reply(0);
  if (reply.kind == ReplyKind::error) store_.refuse(reply);
  if (!isPermitReply(reply)) store_.unexpected(wire);
  const std::int64_t number = reply.items[1].integer;
  if (reply.items[0].isInteger(2))
    throwLimitsDisagree(claim.key, *claim.share, static_cast<std::uint32_t>(number));
  if (reply.items[0].isInteger(0)) return Busy{remainingIn(reply.items[1])};
  if (withFence != (number > 0)) store_.unexpected(wire);
  return Granted{wire.sentAt(), request.ttl,
                 withFence ? std::optional(static_cast<Fence>(number)) : std::nullopt};
}

std::vector<Holder> PermitCalls::holders(std::string_view key, Instant deadline) {
  std::vector<Holder> holders;
  std::unordered_set<std::string> seen;
  for (std::int64_t first = 0;; first += membersAtOnce - membersReadTwice) {
    const std::string from = std::to_string(first);
    const std::string to = std::to_string(first + membersAtOnce - 1);
    Request wire;
    store_.executeScripts(wire, deadline, [&](Request& call, Script::By by) {
      Script::shareHolders().addTo(call, by, std::array{key}, std::array<std::string_view, 2>{from, to});
    });
    const Reply& reply = wire.reply(0);
    if (reply.kind == ReplyKind::error) store_.refuse(reply);
    if (reply.kind != ReplyKind::array || reply.items.size() % 2 != 1) store_.unexpected(wire);
    for (std::size_t index = 1; index < reply.items.size(); index += 2) {
      const std::string& value = reply.items[index].text;
      const auto text = textIn(value);
      if (!text || !text->share) continue;       // somebody else's
      if (!seen.insert(value).second) continue;  // read twice
      holders.push_back({.owner = text->owner,
                         .remaining = remainingIn(reply.items[index + 1]),
                         .fence = {},
                         .grantId = sha1(value),
                         .share = text->share});
    }
    if (reply.items[0].integer < membersAtOnce) return holders;
  }
}

}  // namespace lockkeeper::redis

#include "lock/ordered_claims.h"

#include <string>
#include <string_view>

#include "lock/lock_replies.h"
#include "lock/lock_value.h"
#include "store/companion_key.h"

namespace lockkeeper::redis {

void addOrderedClaims(Request& request, Script::By by, const RedisOptions& options,
                      std::span<const AcquireRequest> claims) {
  const std::string ttl = std::to_string(claims.front().ttl.count());
  const std::string kept = std::to_string(options.fenceKept.count());
  std::vector<ComposedText> texts;  // to which the others point
  texts.reserve(2 * claims.size());
  std::vector<std::string_view> keys;
  std::vector<std::string_view> arguments{ttl, kept};
  for (const AcquireRequest& each : claims) {
    keys.push_back(each.claim.key);
    if (options.fence) keys.push_back(texts.emplace_back(companionKey(each.claim.key, "fence")));
    arguments.push_back(texts.emplace_back(lockValue(each.claim)));
  }
  Script::acquireInOrder().addTo(request, by, keys, arguments);
}

std::vector<AcquireResult> orderedResults(RedisStore& store, const Request& request, const Reply& reply,
                                          std::span<const AcquireRequest> claims) {
  if (reply.kind == ReplyKind::error) store.refuse(reply);
  if (reply.items.empty() || reply.items.size() > claims.size()) store.unexpected(request);
  std::vector<AcquireResult> results;
  for (const Reply& each : reply.items) {
    if (!results.empty() && std::holds_alternative<Busy>(results.back())) store.unexpected(request);
    results.push_back(acquireResult(store, request, each, claims.front().ttl));
  }
  const bool cutShort = results.size() < claims.size() && !std::holds_alternative<Busy>(results.back());
  if (cutShort) store.unexpected(request);
  return results;
}

std::span<const AcquireRequest> grantedOf(std::span<const AcquireRequest> claims,
                                          std::span<const AcquireResult> results) {
  const bool endsBusy = !results.empty() && std::holds_alternative<Busy>(results.back());
  return claims.first(results.size() - (endsBusy ? 1 : 0));
}

}  // namespace lockkeeper::redis

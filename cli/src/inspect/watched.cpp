#include "inspect/watched.h"

#include <utility>

namespace lockkeeper::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t mostLosses = 50;

}  // namespace

WatchedKey Watched::keyOf(const SeenGrant& grant, const LockListing& listing, Instant now) const {
  WatchedKey key{.name = keys_.nameOf(grant.key), .grant = grant, .waiting = listing.waiting(grant.key)};
  if (const auto queue = listing.waiters.find(grant.key); queue != listing.waiters.end()) {
    const Waiter& first = queue->second.front();
    key.firstWaiter = first.owner;
    if (first.waited) key.waitsSince = now - *first.waited;
  }
  return key;
}

void Watched::compare(LockListing listing) {
  const Instant now = systemClock()->now();
  const bool first = std::exchange(first_, false);
  seen_.changes.clear();
  for (const auto& [kind, grant, former, expired] :
       observer_.compare(std::move(listing.holders), now, first)) {
    seen_.changes.push_back({.kind = kind, .key = keyOf(grant, listing, now), .expired = expired});
    if (!expired) continue;
    const SeenGrant& lost = former ? *former : grant;
    seen_.losses.push_front({.at = now,
                             .key = keys_.nameOf(lost.key),
                             .holder = lost.holder,
                             .held = std::chrono::duration_cast<milliseconds>(now - lost.since)});
  }
  while (!seen_.losses.empty() &&
         (seen_.losses.size() > mostLosses || now - seen_.losses.back().at > lossesShown)) {
    seen_.losses.pop_back();
  }
  seen_.held.clear();
  for (const auto& [name, grant] : observer_.held()) seen_.held.push_back(keyOf(grant, listing, now));
}

}  // namespace lockkeeper::cli

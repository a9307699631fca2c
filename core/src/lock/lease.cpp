#include "lock/lease.h"

#include <algorithm>

#include "lock/engine.h"

namespace lockkeeper::detail {

Lease::Lease(Engine& takenBy, std::string fullKey, std::size_t prefix, const Token& secret,
             const LockTerms& terms)
    : keeper(takenBy.keeper()),
      clock(takenBy.options().environment.clock),
      key(std::move(fullKey)),
      namespaceBytes(prefix),
      token(secret),
      owner(takenBy.options().owner),
      ttl(terms.ttl),
      margin(terms.margin),
      renew(terms.renew) {}

Lease::~Lease() {
  if (forkGuard.inherited()) turn.forget();
}

Renewal Lease::renewal(Instant now) const {
  if (renew == Renew::automatic) return {.claim = claim(), .ttl = ttlMilliseconds()};
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(saturatingAdd(leasedFrom, length) - now);
  return {.claim = claim(), .ttl = std::max(rest, std::chrono::milliseconds{1}), .atLeast = true};
}

bool Lease::valid() noexcept {
  if (forkGuard.inherited() || !alive()) return false;
  if (clock->now() < validUntil.load(std::memory_order_acquire)) return true;
  const auto keeping = keeper.lock();
  return keeping && keeping->stillRuns(*this);
}

void Lease::leased(Instant from, std::chrono::milliseconds leasedFor) noexcept {
  length = saturated(leasedFor);
  leasedFrom = confirmedFrom = from;
  const Instant end = saturatingAdd(from, length - driftOf(length) - margin.value_or(length / 10));
  validUntil.store(std::min(end, holdUntil), std::memory_order_release);
  // A third leaves room for two more attempts before the end.
  renewAt = renew == Renew::automatic ? saturatingAdd(from, length / 3) : Instant::max();
}

}  // namespace lockkeeper::detail

#include "lock/lease.h"

#include <algorithm>

#include "base/fork_generation.h"
#include "lock/engine.h"

namespace lockkeeper::detail {

Lease::Lease(Engine& takenBy, std::string fullKey, std::size_t prefix, const Token& secret,
             const LockTerms& terms)
    : engine(takenBy.weak_from_this()),
      clock(takenBy.options().environment.clock),
      generation(forkGeneration()),
      key(std::move(fullKey)),
      namespaceBytes(prefix),
      token(secret),
      owner(takenBy.options().owner),
      ttl(terms.ttl),
      margin(terms.margin),
      renew(terms.renew) {}

bool Lease::valid() noexcept {
  if (generation != forkGeneration() || !alive()) return false;
  if (clock->now() < validUntil.load(std::memory_order_acquire)) return true;
  const auto keeping = engine.lock();
  return keeping && keeping->stillRuns(*this);
}

void Lease::leased(Instant leasedFrom) noexcept {
  validUntil.store(std::min(leasedFrom + ttl - driftOf(ttl) - margin, holdUntil), std::memory_order_release);
  // A third leaves room for two more attempts before the end.
  renewAt = renew == Renew::automatic ? leasedFrom + ttl / 3 : Instant::max();
}

}  // namespace lockkeeper::detail

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

void Lease::answered(ReleaseOutcome outcome) noexcept {
  if (const auto keeping = keeper.lock()) keeping->releaseAnswered(*this, outcome);
}

void Lease::failed(ErrorCode code, std::string_view text) noexcept {
  if (const auto keeping = keeper.lock()) keeping->releaseFailed(*this, code, text);
}

bool Lease::valid() noexcept {
  if (forkGuard.inherited() || !alive()) return false;
  if (clock->now() < validUntil.load(std::memory_order_acquire)) return true;
  const auto keeping = keeper.lock();
  return keeping && keeping->stillRuns(*this);
}

void Lease::leased(Instant leasedFrom, std::chrono::milliseconds leasedFor) noexcept {
  length = saturated(leasedFor);
  const Instant end = saturatingAdd(leasedFrom, length - driftOf(length) - margin.value_or(length / 10));
  validUntil.store(std::min(end, holdUntil), std::memory_order_release);
  // A third leaves room for two more attempts before the end.
  renewAt = renew == Renew::automatic ? saturatingAdd(leasedFrom, length / 3) : Instant::max();
}

}  // namespace lockkeeper::detail

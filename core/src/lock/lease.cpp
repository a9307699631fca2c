#include "lock/lease.h"

#include <algorithm>

#include "base/fork_generation.h"
#include "lock/engine.h"
#include "lockkeeper/duration.h"

namespace lockkeeper {

using detail::shortestTtl;
using std::chrono::hours;
using std::chrono::milliseconds;

void checkOptions(const LockOptions& options) {
  checkDuration("ttl", options.ttl, shortestTtl, hours{24});
  checkDuration("waitFor", options.waitFor, milliseconds{0}, hours{24});
  if (options.maxHold) checkDuration("maxHold", *options.maxHold, milliseconds{1}, milliseconds::max());
  if (options.safetyMargin) {
    const auto most = std::chrono::floor<milliseconds>(options.ttl / 2 - detail::driftOf(options.ttl));
    checkDuration("safetyMargin", *options.safetyMargin, milliseconds{0}, most);
  }
}

namespace detail {

Lease::Lease(Engine& takenBy, std::string fullKey, std::size_t prefix, const Token& secret,
             const LockOptions& options)
    : engine(takenBy.weak_from_this()),
      clock(takenBy.options().environment.clock),
      generation(forkGeneration()),
      key(std::move(fullKey)),
      namespaceBytes(prefix),
      token(secret),
      owner(takenBy.options().owner),
      ttl(options.ttl),
      margin(options.safetyMargin.value_or(options.ttl / 10)),
      renew(options.renew) {}

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

}  // namespace detail
}  // namespace lockkeeper

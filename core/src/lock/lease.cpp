#include "lock/lease.h"

#include <algorithm>

#include "lock/engine.h"
#include "lockkeeper/duration.h"

namespace lockkeeper {

using detail::longestTtl;
using detail::shortestTtl;
using std::chrono::hours;
using std::chrono::milliseconds;

void checkOptions(const LockOptions& options) {
  checkDuration("ttl", options.ttl, shortestTtl, longestTtl);
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
    : keeper(takenBy.keeper()),
      clock(takenBy.options().environment.clock),
      key(std::move(fullKey)),
      namespaceBytes(prefix),
      token(secret),
      owner(takenBy.options().owner),
      ttl(options.ttl),
      margin(options.safetyMargin),
      renew(options.renew) {}

bool Lease::valid() noexcept {
  if (forkGuard.inherited() || !alive()) return false;
  if (clock->now() < validUntil.load(std::memory_order_acquire)) return true;
  const auto keeping = keeper.lock();
  return keeping && keeping->stillRuns(*this);
}

void Lease::leased(Instant leasedFrom, std::chrono::nanoseconds leasedFor) noexcept {
  length = leasedFor;
  const Instant end = saturatingAdd(leasedFrom, length - driftOf(length) - margin.value_or(length / 10));
  validUntil.store(std::min(end, holdUntil), std::memory_order_release);
  // A third leaves room for two more attempts before the end.
  renewAt = renew == Renew::automatic ? saturatingAdd(leasedFrom, length / 3) : Instant::max();
}

}  // namespace detail
}  // namespace lockkeeper

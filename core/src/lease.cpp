#include "lease.h"

#include <algorithm>

#include "range.h"

namespace lockkeeper {

using detail::checkRange;
using detail::shortestTtl;
using std::chrono::hours;
using std::chrono::milliseconds;

void checkOptions(const LockOptions& options) {
  checkRange("ttl", options.ttl, shortestTtl, hours{24});
  checkRange("waitFor", options.waitFor, milliseconds{0}, hours{24});
  if (options.maxHold) checkRange("maxHold", *options.maxHold, milliseconds{1}, milliseconds::max());
  if (options.safetyMargin) {
    const auto most = std::chrono::floor<milliseconds>(options.ttl / 2 - detail::driftOf(options.ttl));
    checkRange("safetyMargin", *options.safetyMargin, milliseconds{0}, most);
  }
}

namespace detail {

Lease::Lease(std::string fullKey, std::size_t prefix, const Token& secret, std::string_view label,
             const LockOptions& options)
    : key(std::move(fullKey)),
      namespaceBytes(prefix),
      token(secret),
      owner(label),
      ttl(options.ttl),
      margin(options.safetyMargin.value_or(options.ttl / 10)),
      renew(options.renew) {}

void Lease::leased(Instant leasedFrom) noexcept {
  validUntil.store(std::min(leasedFrom + ttl - driftOf(ttl) - margin, holdUntil), std::memory_order_release);
  // A third leaves room for two more attempts before the end.
  renewAt = renew == Renew::automatic ? leasedFrom + ttl / 3 : Instant::max();
}

}  // namespace detail
}  // namespace lockkeeper

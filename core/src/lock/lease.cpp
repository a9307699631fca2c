#include "lock/lease.h"

#include <algorithm>
#include <cstring>

#include "lock/engine.h"

namespace lockkeeper::detail {

namespace {

std::chrono::nanoseconds longestHold(const LockTerms& terms) {
  return terms.maxHold ? saturated(*terms.maxHold) : std::chrono::nanoseconds::max();
}

}  // namespace

const std::stop_token& firedToken() {
  static const std::stop_token& token = *new std::stop_token([] {
    std::stop_source source;
    source.request_stop();
    return source.get_token();
  }());
  return token;
}

Lease::Lease(Engine& takenBy, std::string fullKey, std::size_t prefix, const LockTerms& terms)
    : keeper(takenBy.keeper()),
      clock(takenBy.options().environment.clock),
      key(std::move(fullKey)),
      share(terms.share),
      owner(takenBy.options().owner),
      ttl(terms.ttl),
      margin(terms.margin),
      maxHold(longestHold(terms)),
      namespaceBytes(static_cast<std::uint32_t>(prefix)),
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

// Its bits are random.
std::size_t hashOf(const Token& token) {
  std::size_t hash = 0;
  std::memcpy(&hash, token.bytes().data(), sizeof hash);
  return hash;
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

std::stop_token Lease::lostToken() noexcept {
  if (forkGuard.inherited()) return firedToken();  // the child owns nothing
  if (const auto keeping = keeper.lock()) return keeping->lostToken(*this);
  return state.load(std::memory_order_acquire) == LockState::lost ? firedToken() : std::stop_token();
}

void Lease::granted(const Granted& grant, Instant now) noexcept {
  hold(now);
  fence = grant.fence;
  turnsLeft = std::max(grant.turns, std::uint32_t{1}) - 1;
  grantAskedAt = grant.leasedFrom;
  // A key that is free for a round trip between two grants stays so for nearly the same part of the time.
  const std::chrono::nanoseconds brief = (now - grant.leasedFrom) / 4;
  handOnUntil = saturatingAdd(now, grant.stay > grant.stay.zero() ? grant.stay : brief);
  leased(grant.leasedFrom, saturated(grant.leasedFor));
}

bool Lease::succeed(const Lease& former, Instant now) noexcept {
  if (ttl != former.ttl) return false;
  hold(now);
  leased(former.leasedFrom, former.length);
  if (now >= validUntil.load(std::memory_order_relaxed)) return false;
  needsRenewal = end() - now < length / 2;
  token = former.token;
  fence = former.fence;
  if (fence) ++*fence;
  turnsLeft = former.turnsLeft - 1;
  grantAskedAt = former.grantAskedAt;
  handOnUntil = former.handOnUntil;
  // What a renewal that is under way comes to will be this one's.
  if (former.renew == Renew::automatic && former.renewAt == Instant::max()) renewAt = Instant::max();
  return true;
}

void Lease::hold(Instant now) noexcept {
  acquiredAt = now;
  holdUntil = saturatingAdd(now, maxHold);
}

void Lease::startHolding(const LockTerms& terms, Instant now) noexcept {
  renew = terms.renew;
  maxHold = longestHold(terms);
  hold(now);
  validUntil.store(std::min(end(), holdUntil), std::memory_order_release);
  if (renew == Renew::manual) renewAt = Instant::max();
}

// Of its validity, however long it may be held.
Instant Lease::end() const noexcept {
  return saturatingAdd(leasedFrom, length - driftOf(length) - margin.value_or(length / 10));
}

void Lease::leased(Instant from, std::chrono::nanoseconds leasedFor) noexcept {
  leasedFrom = confirmedFrom = from;
  length = leasedFor;
  validUntil.store(std::min(end(), holdUntil), std::memory_order_release);
  // A third leaves room for two more attempts before the end.
  renewAt = renew == Renew::automatic ? saturatingAdd(from, length / 3) : Instant::max();
}

}  // namespace lockkeeper::detail

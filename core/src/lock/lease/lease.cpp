#include "lock/lease/lease.h"

#include <algorithm>
#include <cstring>

#include "lockkeeper/trace/trace_scope.h"

namespace lockkeeper::detail {

namespace {

std::chrono::nanoseconds longestHold(const LockTerms& terms) {
  return terms.maxHold ? saturated(*terms.maxHold) : std::chrono::nanoseconds::max();
}

// Fits, since each length is 24 h at most.
Lease::Milliseconds small(std::chrono::milliseconds length) {
  return std::chrono::duration_cast<Lease::Milliseconds>(length);
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

namespace {

std::shared_ptr<const LeaseContext> inPresentTrace(std::shared_ptr<const LeaseContext> context) {
  if (TraceScope::current().empty()) return context;
  const auto traced = std::make_shared<LeaseContext>(*context);
  traced->trace = TraceScope::current();
  return traced;
}

}  // namespace

Lease::Lease(std::shared_ptr<const LeaseContext> itsContext, std::string fullKey, LocalQueue::Hash keyHash,
             const LockTerms& terms)
    : context(inPresentTrace(std::move(itsContext))),
      turn(std::move(fullKey), keyHash),
      heldFor(longestHold(terms)),
      share(terms.share.value_or(noShare)),
      ttl(small(terms.ttl)),
      margin(terms.margin ? small(*terms.margin) : tenthOfLease),
      renew(terms.renew) {}

Lease::~Lease() {
  if (context->forkGuard.inherited()) turn.forget();
}

void Lease::answered(ReleaseOutcome outcome) noexcept {
  if (const auto keeping = context->keeper.lock()) keeping->releaseAnswered(*this, outcome);
}

void Lease::failed(ErrorCode code, std::string_view text) noexcept {
  if (const auto keeping = context->keeper.lock()) keeping->releaseFailed(*this, code, text);
}

Event Lease::endEvent(EventKind kind, std::string_view store, Instant ended) const {
  return {.kind = kind,
          .key = key(),
          .store = store,
          .began = acquiredAt,
          .ended = ended,
          .fence = fence(),
          .share = sharing(),
          .loss = lossReason,
          .trace = trace()};
}

// The bits of a token are random: any of them are a hash.
std::size_t hashOf(const Token& token) {
  std::size_t hash = 0;
  std::memcpy(&hash, token.bytes().data(), sizeof hash);
  return hash;
}

Renewal Lease::renewal(Instant now) const {
  if (renew == Renew::automatic) return {.claim = claim(), .ttl = ttl};
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(endOfLease() - now);
  return {.claim = claim(), .ttl = std::max(rest, std::chrono::milliseconds{1}), .atLeast = true};
}

Renewal Lease::lastRenewal(Instant now) const {
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(heldUntil() - now);
  return {.claim = claim(), .ttl = std::clamp<std::chrono::milliseconds>(rest, shortestTtl, longestTtl)};
}

bool Lease::valid() noexcept {
  if (context->forkGuard.inherited() || !alive()) return false;
  if (context->clock->now() < validUntil.load(std::memory_order_acquire)) return true;
  const auto keeping = context->keeper.lock();
  return keeping && keeping->stillRuns(*this);
}

std::stop_token Lease::lostToken() noexcept {
  if (context->forkGuard.inherited()) return firedToken();  // the child owns nothing
  if (const auto keeping = context->keeper.lock()) return keeping->lostToken(*this);
  return state.load(std::memory_order_acquire) == LockState::lost ? firedToken() : std::stop_token();
}

void Lease::granted(const Granted& grant, Instant now) noexcept {
  acquiredAt = now;
  hasFence = grant.fence.has_value();
  fenceNumber = grant.fence.value_or(0);
  turnsLeft = static_cast<std::uint8_t>(std::max(grant.localHolders, std::uint32_t{1}) - 1);
  if (turnsLeft > 0) {
    // Without a hint of the store, the key is handed on for a quarter of a round trip: then it is free, for
    // other processes, for most of the time that it would be free otherwise.
    const std::chrono::nanoseconds quarter = (now - grant.leasedFrom) / 4;
    turn.handingOn() = {.until = saturatingAdd(
                            now, grant.handOverFor > grant.handOverFor.zero() ? grant.handOverFor : quarter),
                        .askedAt = grant.leasedFrom};
  }
  leased(grant.leasedFrom, saturated(grant.leasedFor));
}

bool Lease::succeed(const Lease& former, Instant now) noexcept {
  if (ttl != former.ttl) return false;
  acquiredAt = now;
  leased(former.leasedFrom, former.length);
  if (now >= validUntil.load(std::memory_order_relaxed)) return false;
  needsRenewal = end() - now < length / 2;
  token = former.token;
  hasFence = former.hasFence;
  fenceNumber = former.fenceNumber + 1;
  turnsLeft = former.turnsLeft - 1;
  // A renewal is under way: its outcome will be applied to this lease, and plans the next one.
  if (former.renew == Renew::automatic && former.renewAt == Instant::max()) renewAt = Instant::max();
  return true;
}

void Lease::startHolding(const LockTerms& terms, Instant now) noexcept {
  renew = terms.renew;
  heldFor = longestHold(terms);
  acquiredAt = now;
  validUntil.store(std::min(end(), heldUntil()), std::memory_order_release);
  if (renew == Renew::manual) renewAt = Instant::max();
}

// When its validity ends, maxHold apart.
Instant Lease::end() const noexcept {
  const std::chrono::nanoseconds kept = margin == tenthOfLease ? length / 10 : margin;
  return saturatingAdd(mayEndAt(), -kept);
}

void Lease::leased(Instant from, std::chrono::nanoseconds leasedFor) noexcept {
  leasedFrom = confirmedFrom = from;
  length = leasedFor;
  validUntil.store(std::min(end(), heldUntil()), std::memory_order_release);
  // After a third of it there is time for two more attempts before the end.
  renewAt = renew == Renew::automatic ? saturatingAdd(from, length / 3) : Instant::max();
}

}  // namespace lockkeeper::detail

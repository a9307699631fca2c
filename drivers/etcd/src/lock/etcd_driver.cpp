#include "lockkeeper/etcd/etcd_driver.h"

#include <utility>

#include "lease/held_claims.h"
#include "lease/leases.h"
#include "lock/claim_move.h"
#include "lock/listing.h"
#include "lock/renewal.h"
#include "lock/share_claims.h"
#include "queue/claim_queue.h"
#include "store/claim.h"
#include "store/etcd_store.h"

namespace lockkeeper::etcd {

/// What the driver's operations share.
class EtcdDriver::Impl : public EtcdStore {
 public:
  Impl(EtcdOptions options, Environment environment)
      : EtcdStore(std::move(options), std::move(environment)) {}

  AcquireResult claim(const AcquireRequest& request);
  void hold(const std::string& key, const Token& token, const Granted& granted);
  ReleaseOutcome release(const Claim& claim, Instant deadline);
  bool breakLock(std::string_view key, Instant deadline, const Holder* shown);
  bool breakClaim(const Entry& claim, Instant deadline);

  HeldClaims held;
  Leases leases{*this};
  ClaimQueue queue{*this, leases, held};
  ShareClaims shares{*this, leases, queue, held};
  RenewalRound renewals{*this, leases, held};
  Listing listing{*this, leases};
};

EtcdDriver::EtcdDriver(EtcdOptions options, Environment environment)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(environment))) {}

EtcdDriver::~EtcdDriver() {
  // Closing an inherited connection properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult EtcdDriver::acquire(const AcquireRequest& request) {
  impl_->forkGuard.check();
  return impl_->claim(request);
}

AcquireResult EtcdDriver::acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                                         std::stop_token stop) {
  impl_->forkGuard.check();
  const AcquireResult result = impl_->queue.wait(request, saturatingAdd(impl_->clock().now(), waitFor), stop);
  if (const auto* granted = std::get_if<Granted>(&result)) {
    impl_->hold(impl_->keyOf(request.claim), request.claim.token, *granted);
  }
  return result;
}

void EtcdDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  impl_->renewals.renew(renewals, deadline);
  impl_->queue.readPending();
}

ReleaseOutcome EtcdDriver::release(const Claim& claim, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->release(claim, deadline);
}

std::optional<Holder> EtcdDriver::holder(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->listing.holder(key, deadline);
}

Promises EtcdDriver::promises() const {
  impl_->forkGuard.check();
  return {.fence = FencePromise::durable,
          .durability =
              "etcd answers once a majority of its members has written the lock to disk: it outlives "
              "the crash of any minority, and its lease starts again when another member becomes the leader"};
}

std::string EtcdDriver::name() const { return impl_->name(); }

void* EtcdDriver::findCapability(const std::type_info& type) noexcept {
  return capabilityOf<Waitable, Browsable, Breakable, Permits, LossReporting>(*this, type);
}

void EtcdDriver::list(std::string_view prefix,
                      const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                      Instant deadline) {
  impl_->forkGuard.check();
  impl_->listing.list(prefix, true, visit, deadline);
}

std::string EtcdDriver::listBusy(std::string_view /*place*/,
                                 const std::function<bool(std::string_view key)>& wanted,
                                 const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                                 Instant deadline) {
  impl_->forkGuard.check();
  const auto visitWanted = [&](std::string_view key, const Holder& holder) {
    return !wanted(key) || visit(key, holder);
  };
  impl_->listing.list("", false, visitWanted, deadline);
  return {};
}

bool EtcdDriver::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  impl_->forkGuard.check();
  return impl_->breakLock(key, deadline, shown);
}

std::vector<Holder> EtcdDriver::shareHolders(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->listing.shareHolders(key, deadline);
}

bool EtcdDriver::resize(std::string_view key, std::uint32_t limit, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->shares.resize(key, limit, deadline);
}

void EtcdDriver::addLossListener(std::weak_ptr<LossListener> listener) {
  impl_->forkGuard.check();
  impl_->held.addListener(std::move(listener));
}

AcquireResult EtcdDriver::Impl::claim(const AcquireRequest& request) {
  const std::string key = keyOf(request.claim);
  if (request.claim.share) {
    const AcquireResult result = shares.claim(request);
    if (const auto* shareGranted = std::get_if<Granted>(&result))
      hold(key, request.claim.token, *shareGranted);
    return result;
  }
  const KeyRange claims = claimsOf(request.claim.key);
  const Lease lease = leases.grant(request.ttl, request.deadline);
  const TransactionReply reply = leases.attach(key, lease,
                                               {.compares = {createdAt(claims, 0)},
                                                .then = {put(key, valueOf(request.claim), lease.id)},
                                                .otherwise = {getFirst(claims)}},
                                               request.deadline);
  std::optional<Granted> granted;
  if (reply.succeeded) {
    queue.resumed(key);
    granted = Granted{lease.from, lease.length, static_cast<Fence>(reply.revision)};
  } else if (!reply.found[0].empty() && reply.found[0][0].key == key) {
    granted = grantAgain(*this, leases, held, reply.found[0][0], lease, request.deadline);
    queue.resumed(key);
  }
  if (!granted) {
    leases.end(lease.id);
    // An earlier attempt that comes late would take the lock for nobody.
    leases.endDoubted(key, request.deadline);
    return Busy{};
  }
  hold(key, request.claim.token, *granted);
  return *granted;
}

void EtcdDriver::Impl::hold(const std::string& key, const Token& token, const Granted& granted) {
  held.add(key, token, static_cast<std::int64_t>(granted.fence.value_or(0)), granted.leasedFrom,
           granted.leasedFor);
}

// The key goes if it is still the one that was granted; its lease, which holds nothing else, afterwards. A
// share's value is not compared: its limit may be another one now, and its key names the token, too.
ReleaseOutcome EtcdDriver::Impl::release(const Claim& claim, Instant deadline) {
  const std::string key = keyOf(claim);
  const auto created = held.createdAt(key);
  held.remove(key);
  const std::string ours = created       ? createdAt({.from = key}, *created)
                           : claim.share ? createdAfter({.from = key}, 0)
                                         : hasValue(key, valueOf(claim));
  std::vector<std::string> then{get(key)};
  if (!claim.share) then.push_back(getFirst(claimsOf(claim.key)));
  then.push_back(remove(key));
  const TransactionReply reply =
      execute({.compares = {ours}, .then = std::move(then), .otherwise = {get(key)}}, deadline);
  leases.endDoubted(key, deadline);
  if (reply.succeeded || reply.found[0].empty()) queue.resumed(key);
  if (!reply.succeeded || reply.found[0].empty()) return ReleaseOutcome::notOwner;
  const Entry& own = reply.found[0][0];
  // Otherwise it waited, on a lease that others share.
  if (created) leases.end(own.lease);
  const auto text = textIn(own.value);
  const bool wasHolder = claim.share ? !(text && text->waits) : reply.found[1][0].key == key;
  return wasHolder ? ReleaseOutcome::released : ReleaseOutcome::notOwner;
}

// All that hold the key, or the one that was shown.
bool EtcdDriver::Impl::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  std::vector<LineClaim> claims = readAll(*this, key, deadline).claims();
  std::erase_if(claims, [&](const LineClaim& each) {
    return !each.granted || (shown != nullptr && shown->fence != static_cast<Fence>(each.entry.created));
  });
  bool broken = false;
  try {
    for (const LineClaim& each : claims) broken = breakClaim(each.entry, deadline) || broken;
  } catch (const StoreUnavailable& error) {
    if (!broken) throw;
    throw OutcomeUnknown(std::string(error.what()) + "; some of those who share the key have lost it");
  }
  return broken;
}

// Its lease may be one that waiters share: it ends by itself.
bool EtcdDriver::Impl::breakClaim(const Entry& claim, Instant deadline) {
  const TransactionReply reply = execute(
      {.compares = {createdAt({.from = claim.key}, claim.created)}, .then = {remove(claim.key)}}, deadline);
  if (reply.succeeded) held.lost(claim.key, reply.revision);
  return reply.succeeded;
}

}  // namespace lockkeeper::etcd

#include "lockkeeper/migration/migrating_driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"

#include <algorithm>
#include <functional>
#include <new>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"
#include "membership.h"
#include "stores/marked_store.h"
#include "stores/outcomes.h"

namespace lockkeeper::migration {

namespace {

// Where another failure is told already. What stays ends with its ttl.
void releaseQuietly(LockDriver& store, const Claim& claim, Instant deadline) noexcept {
  try {
    store.release(claim, deadline);
  } catch (...) {
  }
}

// A store may lease for longer than it was asked to. In one store alone, that must not be used: the others
// wait for maxTtl only.
std::chrono::milliseconds usableLease(std::chrono::milliseconds leasedFor, Phase phase,
                                      const MigrationOptions& options) {
  return phase == Phase::both ? leasedFor : std::min(leasedFor, options.maxTtl);
}

// A holder in the old store, for whoever asks.
Holder shown(Holder inOldStore) {
  inOldStore.fence.reset();
  inOldStore.owner = unmarkedLabel(inOldStore.owner);
  return inOldStore;
}

}  // namespace

MigratingDriver::MigratingDriver(std::shared_ptr<LockDriver> oldStore, std::shared_ptr<LockDriver> newStore,
                                 std::shared_ptr<SharedRecords> records, MigrationOptions options,
                                 Environment environment)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      oldStore_(std::make_shared<MarkedStore>(oldStore)),
      newStore_(std::move(newStore)) {
  if (!oldStore || !newStore_ || !records) {
    throw std::invalid_argument("a migration needs an old store, a new store and a store for its state");
  }
  if (oldStore == newStore_) throw std::invalid_argument("a migration needs two stores, not one twice");
  checkOptions(options_);
  membership_ = std::make_shared<Membership>(std::move(records), options_, environment_, std::move(oldStore));
}

MigratingDriver::~MigratingDriver() {
  if (forkGuard_.inherited()) {
    // The thread is not here and the mutexes may be held by it for ever: leaking them is right.
    new (std::nothrow) auto(membership_);
    return;
  }
  membership_->leave();
}

AcquireResult MigratingDriver::acquire(const AcquireRequest& asked) {
  forkGuard_.check();
  // Each holder asks: none of them must go on in a phase that has ended.
  AcquireRequest request = asked;
  request.localHolders = 1;
  const Phase phase = membership_->choose(request);
  const auto failed = [&](bool perhapsApplied) {
    if (perhapsApplied || request.resend) {
      membership_->doubt(request.claim, request.ttl);
    } else {
      membership_->forget(request.claim);
    }
  };
  AcquireResult result;
  try {
    result = acquireIn(phase, request);
  } catch (const Error& error) {
    failed(error.code() == ErrorCode::outcomeUnknown || error.code() == ErrorCode::protocol);
    throw;
  } catch (const std::invalid_argument&) {
    failed(false);
    throw;
  } catch (...) {
    membership_->doubt(request.claim, request.ttl);
    throw;
  }
  auto* granted = std::get_if<Granted>(&result);
  if (granted == nullptr) {
    membership_->forget(request.claim);
    return result;
  }
  granted->leasedFor = usableLease(granted->leasedFor, phase, options_);
  if (membership_->confirm(request, *granted)) return result;
  giveBack(phase == Phase::legacy ? *oldStore_ : *newStore_, request.claim, request.deadline);
  membership_->forget(request.claim);
  throw StoreUnavailable("the process was out of touch with the migration's state: the lock was given back");
}

AcquireResult MigratingDriver::acquireIn(Phase phase, const AcquireRequest& request) {
  switch (phase) {
    case Phase::legacy:
      return acquireOld(request);
    case Phase::both:
      return acquireBoth(request);
    case Phase::modern:
      break;
  }
  return newStore_->acquire(request);
}

AcquireResult MigratingDriver::acquireOld(const AcquireRequest& request) {
  AcquireResult result = oldStore_->acquire(request);
  if (auto* granted = std::get_if<Granted>(&result)) {
    granted->fence.reset();
  } else {
    lookWhoHolds(request);
  }
  return result;
}

AcquireResult MigratingDriver::acquireBoth(const AcquireRequest& request) {
  checkApart(request);
  const AcquireResult first = acquireOld(request);
  if (std::holds_alternative<Busy>(first)) {
    // The claim may have got as far as the new store when it was sent before.
    if (request.resend) giveBack(*newStore_, request.claim, request.deadline);
    return first;
  }
  AcquireResult second;
  try {
    second = newStore_->acquire(request);
  } catch (const OutcomeUnknown&) {
    throw;  // The claim will be sent again, or given up, to both.
  } catch (const ProtocolError&) {
    throw;
  } catch (const std::exception&) {  // a ttl that the new store cannot give among them
    giveBack(*oldStore_, request.claim, request.deadline);
    throw;
  }
  if (auto* granted = std::get_if<Granted>(&second)) {
    const Granted& old = std::get<Granted>(first);
    std::tie(granted->leasedFrom, granted->leasedFor) =
        commonLease({granted->leasedFrom, granted->leasedFor}, {old.leasedFrom, old.leasedFor});
  } else {
    giveBack(*oldStore_, request.claim, request.deadline);
  }
  return second;
}

void MigratingDriver::giveBack(LockDriver& store, const Claim& claim, Instant deadline) {
  try {
    store.release(claim, deadline);
  } catch (const Error&) {
    throw WithdrawalUnknown("the lock was taken in one store only, and giving it back failed");
  }
}

// Two names may lead to one store, where a lock in `both` would be one lock. A lock of a name that nobody
// else has must not be seen in the other store. It begins like the key: who asks may have no right to others.
void MigratingDriver::checkApart(const AcquireRequest& request) {
  if (apart_) return;
  const Token token = Token::generate(*environment_.random);
  const std::string name = std::string(reservedMark) + "probe:" + Token::generate(*environment_.random).hex();
  const std::string key = std::string(request.claim.key.substr(0, maxKeyBytes - name.size())) + name;
  const Claim probe{key, token, request.claim.owner};
  static_cast<void>(oldStore_->acquire({probe, request.ttl, request.deadline}));
  bool same = false;
  try {
    same = newStore_->holder(key, request.deadline).has_value();
  } catch (...) {
    releaseQuietly(*oldStore_, probe, request.deadline);
    throw;
  }
  oldStore_->release(probe, request.deadline);
  if (same) throw ConfigError("the old and the new store of the migration are the same");
  apart_ = true;
}

void MigratingDriver::lookWhoHolds(const AcquireRequest& request) {
  if (!membership_->wantsToLook()) return;
  try {
    const auto holder = oldStore_->holder(request.claim.key, request.deadline);
    if (holder) membership_->saw(request.claim.key, holder->owner);
  } catch (const Error&) {
    // It was only a look.
  }
}

void MigratingDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  forkGuard_.check();
  PairedRenewals pairs([this](Renewal& each, Phase phase) {
    // Sent too late: others may have gone by our silence meanwhile.
    const bool late = phase != Phase::both && !membership_->leasedAt(each.leasedFrom);
    if (each.outcome == RenewOutcome::renewed && late) {
      each.outcome = RenewOutcome::unknown;
      each.cause = "the renewal was sent too late to count in one store alone";
    }
    each.leasedFor = usableLease(each.leasedFor, phase, options_);
    membership_->doubt(each.claim, std::max(each.ttl, each.leasedFor));
    if (each.told) each.told(each);
  });
  for (Renewal& each : renewals) {
    if (const auto phase = membership_->beginRenewal(each)) pairs.add(each, *phase);
  }
  pairs.renewIn(*oldStore_, *newStore_, environment_.clock->now(), deadline);
}

ReleaseOutcome MigratingDriver::release(const Claim& claim, Instant deadline) {
  forkGuard_.check();
  const Phase phase = membership_->phaseOf(claim).value_or(Phase::both);
  ReleaseOutcome outcome = ReleaseOutcome::released;
  switch (phase) {
    case Phase::legacy:
      outcome = oldStore_->release(claim, deadline);
      break;
    case Phase::both:
      outcome = releaseBoth(*oldStore_, *newStore_, claim, deadline);
      break;
    case Phase::modern:
      outcome = newStore_->release(claim, deadline);
      break;
  }
  membership_->forget(claim);
  return outcome;
}

std::optional<Holder> MigratingDriver::holder(std::string_view key, Instant deadline) {
  forkGuard_.check();
  const Phase phase = membership_->phaseNow(key);
  if (phase != Phase::legacy) {
    auto found = newStore_->holder(key, deadline);
    if (found || phase == Phase::modern) return found;
  }
  const auto found = oldStore_->holder(key, deadline);
  return found ? std::optional(shown(*found)) : std::nullopt;
}

std::string MigratingDriver::name() const { return "migration " + options_.name; }

void MigratingDriver::addLossListener(std::weak_ptr<LossListener> listener) {
  forkGuard_.check();
  for (const auto& store : {oldStore_, newStore_}) {
    if (auto* reporting = capability<LossReporting>(*store)) reporting->addLossListener(listener);
  }
}

void MigratingDriver::list(std::string_view prefix,
                           const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                           Instant deadline) {
  forkGuard_.check();
  std::set<std::string, std::less<>> inNew;
  bool goOn = true;
  const auto visitNew = [&](std::string_view key, const Holder& holder) {
    inNew.emplace(key);
    return goOn = visit(key, holder);
  };
  const auto visitOld = [&](std::string_view key, const Holder& holder) {
    if (inNew.contains(key)) return true;
    return visit(key, shown(holder));
  };
  capability<Browsable>(*newStore_)->list(prefix, visitNew, deadline);
  if (goOn) capability<Browsable>(*oldStore_)->list(prefix, visitOld, deadline);
}

MigrationState MigratingDriver::state(Instant deadline) {
  forkGuard_.check();
  return membership_->read(deadline);
}

void* MigratingDriver::findCapability(const std::type_info& type) noexcept {
  if (type == typeid(MigratingDriver)) return this;
  const bool reporting = capability<LossReporting>(*oldStore_) || capability<LossReporting>(*newStore_);
  const bool browsable = capability<Browsable>(*oldStore_) && capability<Browsable>(*newStore_);
  if (reporting && type == typeid(LossReporting)) return capabilityOf<LossReporting>(*this, type);
  return browsable ? capabilityOf<Browsable>(*this, type) : nullptr;
}

std::string_view MigratingDriver::whyNot(const std::type_info& type) const noexcept {
  return type == typeid(Permits) ? "two stores cannot count the permits of one key together" : "";
}

Promises MigratingDriver::promises() const {
  forkGuard_.check();
  const Promises before = oldStore_->promises();
  const Promises after = newStore_->promises();
  return {.fence = membership_->mayUse(Phase::legacy) ? FencePromise::none : after.fence,
          .durability = "old store: " + before.durability + "; new store: " + after.durability};
}

}  // namespace lockkeeper::migration

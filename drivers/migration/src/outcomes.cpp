#include "outcomes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>

#include "lockkeeper/error.h"

namespace lockkeeper::migration {

namespace {

// From good to bad.
template <class Outcome, std::size_t count>
Outcome worse(Outcome a, Outcome b, const std::array<Outcome, count>& order) {
  return std::max(a, b, [&](Outcome left, Outcome right) {
    return std::find(order.begin(), order.end(), left) < std::find(order.begin(), order.end(), right);
  });
}

constexpr std::array renewals = {RenewOutcome::renewed, RenewOutcome::unavailable, RenewOutcome::unknown,
                                 RenewOutcome::notOwner, RenewOutcome::ownerUnknown};
constexpr std::array releases = {ReleaseOutcome::released, ReleaseOutcome::notOwner,
                                 ReleaseOutcome::ownerUnknown};

}  // namespace

LeasePart commonLease(const LeasePart& a, const LeasePart& b) {
  const Instant from = std::min(a.first, b.first);
  const Instant end = std::min(saturatingAdd(a.first, a.second), saturatingAdd(b.first, b.second));
  return {from, std::chrono::floor<std::chrono::milliseconds>(end - from)};
}

std::vector<Renewal> PairedRenewals::renewedIn(LockDriver& store, Phase without, Instant deadline) const {
  std::vector<Renewal> batch;
  for (const Entry& entry : entries_) {
    if (entry.phase == without) continue;
    Renewal& part = batch.emplace_back(entry.renewal);
    part.told = {};  // What one store says is not the outcome yet.
  }
  if (!batch.empty()) store.renew(batch, deadline);
  return batch;
}

void PairedRenewals::renewIn(LockDriver& oldStore, LockDriver& newStore, Instant deadline) {
  const std::vector<Renewal> inOld = renewedIn(oldStore, Phase::modern, deadline);
  const std::vector<Renewal> inNew = renewedIn(newStore, Phase::legacy, deadline);
  auto fromOld = inOld.begin();
  auto fromNew = inNew.begin();
  for (const Entry& entry : entries_) {
    Renewal& each = entry.renewal;
    if (entry.phase == Phase::both) {
      each.outcome = worse(fromOld->outcome, fromNew->outcome, renewals);
      std::tie(each.leasedFrom, each.leasedFor) =
          commonLease({fromOld->leasedFrom, fromOld->leasedFor}, {fromNew->leasedFrom, fromNew->leasedFor});
      each.cause = each.outcome == fromOld->outcome ? fromOld->cause : fromNew->cause;
    } else {
      const Renewal& its = entry.phase == Phase::legacy ? *fromOld : *fromNew;
      each.outcome = its.outcome;
      each.leasedFrom = its.leasedFrom;
      each.leasedFor = its.leasedFor;
    }
    if (entry.phase != Phase::modern) ++fromOld;
    if (entry.phase != Phase::legacy) ++fromNew;
  }
}

ReleaseOutcome releaseBoth(LockDriver& oldStore, LockDriver& newStore, const Claim& claim, Instant deadline) {
  std::optional<ErrorCode> failure;
  std::string message;
  std::optional<ReleaseOutcome> outcome;
  for (LockDriver* store : {&newStore, &oldStore}) {
    try {
      const ReleaseOutcome here = store->release(claim, deadline);
      outcome = outcome ? worse(*outcome, here, releases) : here;
    } catch (const Error& error) {
      const bool untouched = error.code() == ErrorCode::storeUnavailable;
      if (!failure || !untouched) failure = error.code();
      message = error.what();
    }
  }
  if (!failure) return *outcome;
  if (*failure == ErrorCode::storeUnavailable && !outcome) throw StoreUnavailable(message);
  if (*failure == ErrorCode::config && !outcome) throw ConfigError(message);
  throw OutcomeUnknown("the lock was perhaps released in one of two stores only: " + message);
}

}  // namespace lockkeeper::migration

#include "stores/outcomes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

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

// Renewing takes no key from anybody, so for those in both stores the order does not matter: each store is
// asked once.
void PairedRenewals::renewIn(LockDriver& oldStore, LockDriver& newStore, Instant now, Instant deadline) {
  const bool someInOldAlone =
      std::ranges::any_of(entries_, [](const Entry& entry) { return entry.phase == Phase::legacy; });
  const Instant firstDeadline = someInOldAlone ? now + (deadline - now) / 2 : deadline;
  const std::vector<Renewal> inNew = renewedIn(newStore, Phase::modern, firstDeadline);
  const std::vector<Renewal> inOld = renewedIn(oldStore, Phase::legacy, deadline);
  auto fromOld = inOld.begin();
  auto fromNew = inNew.begin();
  for (Entry& entry : entries_) {
    if (entry.phase != Phase::both) continue;
    const RenewOutcome outcome = worse(fromOld->outcome, fromNew->outcome, renewals);
    Renewal found = outcome == fromOld->outcome ? *fromOld : *fromNew;
    std::tie(found.leasedFrom, found.leasedFor) =
        commonLease({fromOld->leasedFrom, fromOld->leasedFor}, {fromNew->leasedFrom, fromNew->leasedFor});
    settle(entry, found);
    ++fromOld;
    ++fromNew;
  }
}

// Settles those that need no other store, as soon as this one has told what became of them; returns what it
// has said of those that need both.
std::vector<Renewal> PairedRenewals::renewedIn(LockDriver& store, Phase alone, Instant deadline) {
  std::vector<Renewal> batch;
  std::vector<Entry*> asked;
  for (Entry& entry : entries_) {
    if (entry.phase != alone && entry.phase != Phase::both) continue;
    Renewal& part = batch.emplace_back(entry.renewal);
    asked.push_back(&entry);
    part.told = {};  // What one store says is not the outcome of both yet.
    if (entry.phase == alone) part.told = [this, &entry](const Renewal& found) { settle(entry, found); };
  }
  if (batch.empty()) return batch;
  try {
    store.renew(batch, deadline);
  } catch (...) {
    // A driver that breaks its contract: the outcomes that it did not write are unknown.
  }
  std::vector<Renewal> ofBoth;
  for (std::size_t index = 0; index < batch.size(); ++index) {
    if (asked[index]->phase == alone) {
      settle(*asked[index], batch[index]);
    } else {
      ofBoth.push_back(std::move(batch[index]));
    }
  }
  return ofBoth;
}

void PairedRenewals::settle(Entry& entry, const Renewal& found) {
  if (std::exchange(entry.settled, true)) return;
  Renewal& each = entry.renewal;
  each.outcome = found.outcome;
  each.leasedFrom = found.leasedFrom;
  each.leasedFor = found.leasedFor;
  each.cause = found.cause;
  settled_(each, entry.phase);
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
  throw OutcomeUnknown("the lock may have been released in only one of the two stores: " + message);
}

}  // namespace lockkeeper::migration

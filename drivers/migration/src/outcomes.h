#pragma once

#include <span>
#include <utility>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/migration/rules.h"

namespace lockkeeper::migration {

/// From when a store leases, and for how long.
using LeasePart = std::pair<Instant, std::chrono::milliseconds>;

/// The lease of a claim that needs both: from the earlier beginning to the earlier end.
LeasePart commonLease(const LeasePart& a, const LeasePart& b);

/// Renewals, each in the stores of its phase: at most one call a store for all of them.
class PairedRenewals {
 public:
  struct Entry {
    Renewal& renewal;
    Phase phase;
  };

  void add(Renewal& renewal, Phase phase) { entries_.push_back({renewal, phase}); }

  /// Writes into each renewal what became of it: renewed only if both stores have renewed it, otherwise the
  /// worse of the two; leased from the earlier moment. Blocks for one call at each store.
  void renewIn(LockDriver& oldStore, LockDriver& newStore, Instant deadline);

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Renewal> renewedIn(LockDriver& store, Phase without, Instant deadline) const;

  std::vector<Entry> entries_;
};

/// Releases in the new store, then in the old one, and returns the worse outcome. Tries both even when one
/// fails; throws OutcomeUnknown then, unless nothing was done at all.
ReleaseOutcome releaseBoth(LockDriver& oldStore, LockDriver& newStore, const Claim& claim, Instant deadline);

}  // namespace lockkeeper::migration

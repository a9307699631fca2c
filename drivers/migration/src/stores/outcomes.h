#pragma once

#include <functional>
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
  /// Called once for each renewal, as soon as it is known what became of it.
  using Settled = std::function<void(Renewal& renewal, Phase phase)>;

  explicit PairedRenewals(Settled settled) : settled_(std::move(settled)) {}

  void add(Renewal& renewal, Phase phase) { entries_.push_back({renewal, phase}); }

  /// Writes into each renewal what became of it: renewed only if both stores have renewed it, otherwise the
  /// worse of the two; leased from the earlier moment. Blocks for one call at each store. A store that hangs
  /// holds up none that does not need it: the new store is asked first, and has only half of the time when
  /// some need nothing but the old one.
  void renewIn(LockDriver& oldStore, LockDriver& newStore, Instant now, Instant deadline);

 private:
  struct Entry {
    Renewal& renewal;
    Phase phase;
    bool settled = false;
  };

  std::vector<Renewal> renewedIn(LockDriver& store, Phase alone, Instant deadline);
  void settle(Entry& entry, const Renewal& found);

  const Settled settled_;
  std::vector<Entry> entries_;
};

/// Releases in the new store, then in the old one, and returns the worse outcome. Tries both even when one
/// fails; throws OutcomeUnknown then, unless nothing was done at all.
ReleaseOutcome releaseBoth(LockDriver& oldStore, LockDriver& newStore, const Claim& claim, Instant deadline);

}  // namespace lockkeeper::migration

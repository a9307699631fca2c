// Renewals, each in the table where its lock is.

#include <algorithm>
#include <vector>

#include "version/version_impl.h"

namespace lockkeeper::mysql {

void VersionDriver::Impl::renew(std::span<Renewal> renewals, Instant deadline) {
  std::vector<Renewal*> whole;
  std::vector<Renewal*> shares;
  whole.reserve(renewals.size());
  for (Renewal& each : renewals) (each.claim.share ? shares : whole).push_back(&each);
  renew(whole, &Tables::locks, deadline);
  renewShares(shares, deadline);
}

template <class Table>
void VersionDriver::Impl::renew(std::span<Renewal* const> renewals, Table Tables::*table, Instant deadline) {
  for (Renewal* each : renewals) each->outcome = RenewOutcome::unavailable;
  for (auto rest = renewals; !rest.empty();) {
    const auto batch = rest.first(std::min(rest.size(), LeaseRows::renewalsAtOnce));
    rest = rest.subspan(batch.size());
    try {
      onTables(deadline, [&](Tables& tables) {
        const Instant leasedFrom = clock().now();
        for (Renewal* each : batch) {
          each->leasedFrom = leasedFrom;
          each->leasedFor = each->ttl;
        }
        (tables.*table).renew(batch, cancelling());
        return true;
      });
    } catch (const Error& error) {
      for (Renewal* each : batch) {
        if (error.code() == ErrorCode::outcomeUnknown) each->outcome = RenewOutcome::unknown;
        each->cause = error.what();
      }
    }
  }
}

// Those that are alone are looked up first: an update of the table of locks would wait for rows of the
// others.
void VersionDriver::Impl::renewShares(std::span<Renewal* const> renewals, Instant deadline) {
  for (auto rest = renewals; !rest.empty();) {
    const auto batch = rest.first(std::min(rest.size(), LeaseRows::renewalsAtOnce));
    rest = rest.subspan(batch.size());
    std::vector<Renewal*> alone;
    std::vector<Renewal*> others;
    try {
      const auto tokens = onTables(deadline, [&](Tables& tables) { return tables.locks.heldOf(batch); });
      for (Renewal* each : batch) (tokens.contains(each->claim.token.hex()) ? alone : others).push_back(each);
    } catch (const Error& error) {
      for (Renewal* each : batch) {
        each->outcome = RenewOutcome::unavailable;
        each->cause = error.what();
      }
    }
    renew(alone, &Tables::locks, deadline);
    // Some may have moved since; none moves back.
    for (Renewal* each : alone) {
      if (each->outcome == RenewOutcome::notOwner) others.push_back(each);
    }
    renew(others, &Tables::shares, deadline);
  }
}

}  // namespace lockkeeper::mysql

#include "lock/renewal.h"

#include <algorithm>

#include "lock/claim_move.h"
#include "store/claim.h"

namespace lockkeeper::etcd {

namespace {

// Two operations for each claim; a server takes 128 in one transaction unless it is told otherwise.
constexpr std::size_t renewedAtOnce = 60;

void setFault(Renewal& renewal, ErrorCode code, const std::string& cause) {
  renewal.outcome = code == ErrorCode::outcomeUnknown || code == ErrorCode::protocol
                        ? RenewOutcome::unknown
                        : RenewOutcome::unavailable;
  renewal.cause = cause;
}

// Whether the claim in the store is the one that was granted. Of a share, the limit may be another one now.
bool holdsIts(const Claim& claim, const Entry& stored) {
  if (!claim.share) return stored.value == valueOf(claim);
  const auto text = textIn(stored.value);
  return text && text->share && !text->waits && withLimit(stored.value, claim.share->limit) == valueOf(claim);
}

void setRenewed(Renewal& renewal, const Lease& lease) {
  renewal.outcome = RenewOutcome::renewed;
  renewal.leasedFrom = lease.from;
  renewal.leasedFor = lease.length;
}

}  // namespace

/// One claim, as the store has it.
struct RenewalRound::Stored {
  std::string key{};  // of the claim
  Entry own{};        // without a lease: nothing is to be done
};

void RenewalRound::renew(std::span<Renewal> renewals, Instant deadline) {
  std::vector<Stored> stored(renewals.size());
  for (std::size_t i = 0; i < renewals.size(); ++i) {
    stored[i].key = store_.keyOf(renewals[i].claim);
  }
  // Some after the others: where the store is slow, those that the time is enough for are renewed.
  for (std::size_t from = 0; from < renewals.size(); from += renewedAtOnce) {
    const std::size_t count = std::min(renewedAtOnce, renewals.size() - from);
    renewSome(renewals.subspan(from, count), std::span(stored).subspan(from, count), deadline);
  }
}

void RenewalRound::renewSome(std::span<Renewal> renewals, std::span<Stored> stored, Instant deadline) {
  try {
    readClaims(renewals, stored, deadline);
    keep(renewals, stored, deadline);
  } catch (const Error& error) {
    for (Renewal& each : renewals) setFault(each, ErrorCode::storeUnavailable, error.what());
  }
  for (std::size_t i = 0; i < renewals.size(); ++i) {
    if (renewals[i].outcome == RenewOutcome::notOwner) held_.remove(stored[i].key);
    if (renewals[i].outcome == RenewOutcome::renewed) {
      held_.kept(stored[i].key, renewals[i].leasedFrom, renewals[i].leasedFor);
    }
    if (renewals[i].told) renewals[i].told(renewals[i]);
  }
}

void RenewalRound::readClaims(std::span<Renewal> renewals, std::span<Stored> stored, Instant deadline) {
  EtcdStore::Transaction wanted{.effect = Effect::none};
  for (std::size_t i = 0; i < renewals.size(); ++i) {
    wanted.then.push_back(get(stored[i].key));
    // A share that is granted stays so; all of a key is the first claim's.
    const Claim& claim = renewals[i].claim;
    if (!claim.share) wanted.then.push_back(getFirst(store_.claimsOf(claim.key)));
  }
  const TransactionReply reply = store_.execute(wanted, deadline);
  auto found = reply.found.begin();
  for (std::size_t i = 0; i < renewals.size(); ++i) {
    const auto& own = *found++;
    const auto& first = renewals[i].claim.share ? own : *found++;
    // One that was removed and came back, by an earlier request that was late, is not the one granted.
    const auto granted = held_.createdAt(stored[i].key);
    const bool holds = !own.empty() && !first.empty() && first[0].key == own[0].key &&
                       holdsIts(renewals[i].claim, own[0]) && own[0].lease != 0 &&
                       own[0].created == granted.value_or(own[0].created);
    renewals[i].outcome = holds ? RenewOutcome::unknown : RenewOutcome::notOwner;
    if (holds) stored[i].own = own[0];
  }
}

void RenewalRound::keep(std::span<Renewal> renewals, std::span<Stored> stored, Instant deadline) {
  std::vector<KeptLease> leases;
  for (const Stored& each : stored) {
    if (each.own.lease != 0) leases.push_back({.id = each.own.lease});
  }
  leases_.keep(leases, deadline);
  auto kept = leases.begin();
  for (std::size_t i = 0; i < renewals.size(); ++i) {
    if (stored[i].own.lease != 0) settle(renewals[i], stored[i], *kept++, deadline);
  }
}

void RenewalRound::settle(Renewal& renewal, const Stored& stored, const KeptLease& kept, Instant deadline) {
  if (kept.error) {
    setFault(renewal, *kept.error, kept.cause);
  } else if (!kept.kept) {
    renewal.outcome = RenewOutcome::notOwner;
  } else if (leases_.fits(*kept.kept, renewal.ttl)) {
    setRenewed(renewal, *kept.kept);
  } else {
    replaceLease(renewal, stored, deadline);
  }
}

void RenewalRound::replaceLease(Renewal& renewal, const Stored& stored, Instant deadline) {
  try {
    const Lease lease = leases_.grant(renewal.ttl, deadline);
    if (move(store_, leases_, held_, stored.own, lease, deadline)) {
      setRenewed(renewal, lease);
    } else {
      renewal.outcome = RenewOutcome::notOwner;
    }
  } catch (const Error& error) {
    setFault(renewal, error.code(), error.what());
  }
}

}  // namespace lockkeeper::etcd

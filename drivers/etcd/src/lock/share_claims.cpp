#include "lock/share_claims.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "lock/claim_move.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/error.h"
#include "lockkeeper/permit/share.h"
#include "store/claim.h"

namespace lockkeeper::etcd {

namespace {

// Two compares and a change for each; a server takes 128 of either in one transaction.
constexpr std::size_t rewrittenAtOnce = 20;

// Then all are forgotten: that costs each of them a claim that is withdrawn.
constexpr std::size_t mostFull = 1024;

}  // namespace

/// How many permits of a key are taken, by those that hold shares of it and those that wait.
struct ShareClaims::Census {
  std::uint64_t permits = 0;
  std::optional<std::uint32_t> otherLimit{};  // that holders have named

  bool fits(const Share& share) const { return permits + share.weight <= share.limit; }
};

AcquireResult ShareClaims::claim(const AcquireRequest& request) {
  const std::optional<Granted> granted = claimOnce(request);
  if (granted) return *granted;
  // An earlier attempt that comes late would take the share for nobody.
  leases_.endDoubted(store_.keyOf(request.claim), request.deadline);
  return Busy{};
}

std::optional<Granted> ShareClaims::claimOnce(const AcquireRequest& request) {
  if (request.ahead) return goAhead(request);
  const Claim& claim = request.claim;
  if (!request.resend && !wasFull(claim.key)) return enter(request);
  const TransactionReply reply = store_.execute(
      {.then = withCensus(get(store_.keyOf(claim)), claim), .effect = Effect::none}, request.deadline);
  if (!reply.found[0].empty()) return grantAgain(request, reply.found[0][0]);
  const Census census = censusIn(reply, claim, false);
  if (census.otherLimit) throwLimitsDisagree(claim.key, *claim.share, *census.otherLimit);
  return census.fits(*claim.share) ? enter(request) : std::nullopt;
}

bool ShareClaims::wasFull(std::string_view key) const {
  const std::lock_guard guard(mutex_);
  return full_.contains(key);
}

void ShareClaims::noteFull(std::string_view key, bool full) {
  const std::lock_guard guard(mutex_);
  if (!full) {
    const auto found = full_.find(key);
    if (found != full_.end()) full_.erase(found);
    return;
  }
  if (full_.size() >= mostFull) full_.clear();
  full_.emplace(key);
}

std::optional<Granted> ShareClaims::enter(const AcquireRequest& request) {
  const Claim& claim = request.claim;
  const std::string key = store_.keyOf(claim);
  const Lease lease = leases_.grant(request.ttl, request.deadline);
  const TransactionReply reply =
      leases_.attach(key, lease,
                     {.compares = {createdAt({.from = key}, 0)},
                      .then = withCensus(put(key, valueOf(claim), lease.id), claim),
                      .otherwise = {get(key)}},
                     request.deadline);
  if (!reply.succeeded) {
    leases_.end(lease.id);
    if (reply.found[0].empty()) store_.unexpected();
    return grantAgain(request, reply.found[0][0]);
  }
  queue_.resumed(key);
  const Census census = censusIn(reply, claim, true);
  const bool fits = !census.otherLimit && census.fits(*claim.share);
  noteFull(claim.key, !fits);
  if (fits) {
    return Granted{lease.from, lease.length, static_cast<Fence>(reply.revision)};
  }
  leases_.withdraw(key, lease.id);
  if (census.otherLimit) throwLimitsDisagree(claim.key, *claim.share, *census.otherLimit);
  return std::nullopt;
}

// Shares of a single permit are only counted; what else stands among them counts as one.
std::vector<std::string> ShareClaims::withCensus(std::string first, const Claim& claim) const {
  const KeyRange singles = store_.singlePermitsOf(claim.key);
  return {std::move(first), getAll(store_.otherClaimsOf(claim.key)), getFirst(singles), count(singles)};
}

// Without the claim itself, which has been `entered` or not.
ShareClaims::Census ShareClaims::censusIn(const TransactionReply& reply, const Claim& claim,
                                          bool entered) const {
  const Share& share = *claim.share;
  const std::string own = store_.keyOf(claim);
  std::vector<Entry> others = reply.found[1];
  const bool firstSingleIsOther = !reply.found[2].empty() && reply.found[2][0].key != own;
  if (firstSingleIsOther) others.push_back(reply.found[2][0]);
  std::erase_if(others, [&](const Entry& each) { return each.key == own; });
  std::ranges::sort(others, {}, &Entry::created);
  const ClaimLine line(std::move(others));
  Census census{.permits = static_cast<std::uint64_t>(reply.counted[3]),
                .otherLimit = line.otherLimit(share)};
  // Those that are counted already, of one permit each.
  if (entered && share.weight == 1) census.permits -= 1;
  if (firstSingleIsOther) census.permits -= 1;
  for (const LineClaim& each : line.claims()) census.permits += permitsOf(each, share);
  return census;
}

// The claim is there already: it is granted if it has its turn, and moves to a lease of its own.
std::optional<Granted> ShareClaims::grantAgain(const AcquireRequest& request, const Entry& own) {
  const Claim& claim = request.claim;
  const bool held = held_.createdAt(own.key) == own.created;
  if (!held) {
    const std::string first = getAll(store_.claimsOf(claim.key), own.created - 1, pageFor(*claim.share));
    TransactionReply reply = store_.execute({.then = {first}, .effect = Effect::none}, request.deadline);
    const ClaimLine line = readOn(store_, claim.key, std::move(reply.found[0]), *claim.share, own.created,
                                  false, request.deadline);
    const auto otherLimit = line.otherLimit(*claim.share);
    if (otherLimit || line.before(*claim.share).needed != 0) {
      // One that waits keeps its place.
      const auto text = textIn(own.value);
      if (text && !text->waits) leases_.withdraw(own.key, own.lease);
      if (otherLimit) throwLimitsDisagree(claim.key, *claim.share, *otherLimit);
      return std::nullopt;
    }
  }
  const Lease lease = leases_.grant(request.ttl, request.deadline);
  const Granted granted = etcd::grantAgain(store_, leases_, held_, own, lease, request.deadline);
  queue_.resumed(own.key);
  return granted;
}

// Those who wait are sent back by the queue; where nobody waits, it is not needed.
std::optional<Granted> ShareClaims::goAhead(const AcquireRequest& request) {
  const Claim& claim = request.claim;
  const std::string key = store_.keyOf(claim);
  const TransactionReply reply = store_.execute(
      {.then = {get(key), getAll(store_.claimsOf(claim.key))}, .effect = Effect::none}, request.deadline);
  if (reply.found[0].empty()) {
    const ClaimLine line(reply.found[1]);
    if (const auto limit = line.otherLimit(*claim.share))
      throwLimitsDisagree(claim.key, *claim.share, *limit);
    if (line.before(*claim.share, true).needed != 0) return std::nullopt;
    if (line.waiting().empty()) return enter(request);
  }
  const AcquireResult result = queue_.attempt(request);
  const auto* granted = std::get_if<Granted>(&result);
  return granted != nullptr ? std::optional(*granted) : std::nullopt;
}

bool ShareClaims::resize(std::string_view key, std::uint32_t limit, Instant deadline) {
  bool changed = false;
  try {
    return changeLimits(key, limit, deadline, changed);
  } catch (const StoreUnavailable& error) {
    if (!changed) throw;
    throw OutcomeUnknown(std::string(error.what()) + "; some of those who hold the key have the new limit");
  }
}

bool ShareClaims::changeLimits(std::string_view key, std::uint32_t limit, Instant deadline, bool& changed) {
  while (true) {
    const ClaimLine line = readAll(store_, key, deadline);
    std::vector<LineClaim> others;  // that name another limit
    bool shared = changed;
    for (const LineClaim& each : line.claims()) {
      shared = shared || (each.granted && each.text.share);
      if (each.text.share && each.text.share->limit != limit) others.push_back(each);
    }
    if (!shared || others.empty()) return shared;
    bool unchanged = true;
    for (std::size_t from = 0; from < others.size() && unchanged; from += rewrittenAtOnce) {
      const std::size_t size = std::min(rewrittenAtOnce, others.size() - from);
      unchanged = rewrite(std::span(others).subspan(from, size), limit, deadline);
      changed = changed || unchanged;
    }
  }
}

// Who holds a share keeps it. Who waits enters again, and hears that it has named another limit.
bool ShareClaims::rewrite(std::span<const LineClaim> claims, std::uint32_t limit, Instant deadline) {
  EtcdStore::Transaction wanted;
  for (const LineClaim& each : claims) {
    const Entry& entry = each.entry;
    for (std::string& compare : unchangedSince(entry.key, entry.created, entry.modified))
      wanted.compares.push_back(std::move(compare));
    wanted.then.push_back(each.granted ? put(entry.key, withLimit(entry.value, limit), entry.lease)
                                       : remove(entry.key));
  }
  return store_.execute(wanted, deadline).succeeded;
}

}  // namespace lockkeeper::etcd

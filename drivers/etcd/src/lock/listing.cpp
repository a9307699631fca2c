#include "lock/listing.h"

#include <utility>

#include "line/claim_line.h"
#include "store/claim.h"

namespace lockkeeper::etcd {

namespace {

constexpr std::size_t claimsAtOnce = 500;

Holder holderOf(const Entry& claim, std::optional<std::chrono::milliseconds> remaining) {
  const ValueText text = textIn(claim.value).value_or(ValueText{});
  return {.owner = text.owner,
          .remaining = remaining,
          .fence = static_cast<Fence>(claim.created),
          .grantId = {},
          .share = text.share};
}

}  // namespace

std::optional<Holder> Listing::holder(std::string_view key, Instant deadline) {
  const TransactionReply reply =
      store_.execute({.then = {getFirst(store_.claimsOf(key))}, .effect = Effect::none}, deadline);
  if (reply.found[0].empty()) return std::nullopt;
  const Entry& first = reply.found[0][0];
  if (first.lease == 0) return holderOf(first, std::nullopt);
  return holderOf(first, leases_.remaining(std::span(&first.lease, 1), deadline)[0]);
}

std::vector<Holder> Listing::shareHolders(std::string_view key, Instant deadline) {
  std::vector<Entry> shares;
  std::vector<std::int64_t> leases;
  const ClaimLine line = readAll(store_, key, deadline);
  for (const LineClaim& each : line.claims()) {
    if (!each.granted || !each.text.share) continue;
    shares.push_back(each.entry);
    leases.push_back(each.entry.lease);
  }
  const auto remaining = leases_.remaining(leases, deadline);
  std::vector<Holder> holders;
  for (std::size_t i = 0; i < shares.size(); ++i) holders.push_back(holderOf(shares[i], remaining[i]));
  return holders;
}

void Listing::list(std::string_view prefix, bool oursOnly, const Visit& visit, Instant deadline) {
  KeyRange rest = store_.locksFrom(prefix);
  std::vector<Shown> locks;  // the last one may have more claims on the next page
  while (true) {
    const EtcdStore::Transaction read{.then = {getPage(rest, claimsAtOnce)}, .effect = Effect::none};
    std::vector<Entry> page = store_.execute(read, deadline).found[0];
    const bool last = page.size() < claimsAtOnce;
    if (!last) rest.from = page.back().key + std::string(1, '\0');
    for (Entry& claim : page) {
      auto key = store_.lockAt(claim.key);
      if (!key) continue;
      if (locks.empty() || locks.back().key != *key) {
        locks.push_back({std::move(*key), std::move(claim)});
      } else if (claim.created < locks.back().claim.created) {
        locks.back().claim = std::move(claim);
      }
    }
    std::vector<Shown> open;
    if (!last && !locks.empty()) {
      open.push_back(std::move(locks.back()));
      locks.pop_back();
    }
    if (!show(locks, oursOnly, visit, deadline) || last) return;
    locks = std::move(open);
  }
}

bool Listing::show(std::vector<Shown>& locks, bool oursOnly, const Visit& visit, Instant deadline) {
  if (oursOnly) std::erase_if(locks, [](const Shown& each) { return !textIn(each.claim.value); });
  std::vector<std::int64_t> ids;
  for (const Shown& each : locks) ids.push_back(each.claim.lease);
  const auto remaining = leases_.remaining(ids, deadline);
  for (std::size_t i = 0; i < locks.size(); ++i) {
    if (!visit(locks[i].key, holderOf(locks[i].claim, remaining[i]))) return false;
  }
  return true;
}

}  // namespace lockkeeper::etcd

#include "store/etcd_store.h"

#include <Poco/Exception.h>

#include "store/claim.h"

namespace lockkeeper::etcd {

namespace {

// Comes after all digits.
constexpr char singlePermit = '~';

}  // namespace

EtcdStore::EtcdStore(EtcdOptions options, Environment environment)
    : Gateway(std::move(options), std::move(environment)), root_(Gateway::options().prefix + "/locks/") {}

TransactionReply EtcdStore::execute(const Transaction& wanted, Instant deadline) {
  const Answer answer = call("/v3/kv/txn", transaction(wanted.compares, wanted.then, wanted.otherwise),
                             deadline, wanted.effect);
  if (answer.noLease) throw StoreUnavailable(name() + ": the lease has ended before it was used");
  try {
    TransactionReply reply = transactionReply(*answer.json);
    const auto& done = reply.succeeded ? wanted.then : wanted.otherwise;
    if (reply.found.size() == done.size()) return reply;
  } catch (const Poco::Exception&) {
  }
  unexpected();
}

void EtcdStore::unexpected() const { throw ProtocolError(name() + ": a reply that etcd does not give"); }

KeyRange EtcdStore::locksFrom(std::string_view prefix) const {
  const std::string from = root_ + encoded(prefix);
  return {.from = from, .to = endOf(from)};
}

KeyRange EtcdStore::claimsOf(std::string_view key) const {
  const std::string from = root_ + encoded(key) + "/";
  return {.from = from, .to = endOf(from)};
}

KeyRange EtcdStore::singlePermitsOf(std::string_view key) const {
  const KeyRange all = claimsOf(key);
  return {.from = all.from + singlePermit, .to = all.to};
}

KeyRange EtcdStore::otherClaimsOf(std::string_view key) const {
  return {.from = claimsOf(key).from, .to = singlePermitsOf(key).from};
}

std::string EtcdStore::keyOf(const Claim& claim) const {
  std::string key = root_ + encoded(claim.key) + "/";
  if (claim.share && claim.share->weight == 1) key += singlePermit;
  return key + digestOf(claim.token);
}

std::optional<std::string> EtcdStore::lockAt(std::string_view stored) const {
  if (!stored.starts_with(root_)) return std::nullopt;
  stored.remove_prefix(root_.size());
  return decoded(stored.substr(0, stored.find('/')));
}

}  // namespace lockkeeper::etcd

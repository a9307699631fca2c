#pragma once

#include <string>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "store/gateway.h"
#include "store/messages.h"

namespace lockkeeper::etcd {

/// A cluster and the keys below one prefix of it. Thread-safe.
class EtcdStore : public Gateway {
 public:
  EtcdStore(EtcdOptions options, Environment environment);

  /// What a transaction does: `then` when all of `compares` hold, `otherwise` when not.
  struct Transaction {
    std::vector<std::string> compares{};
    std::vector<std::string> then{};
    std::vector<std::string> otherwise{};
    Effect effect = Effect::perhaps;
  };

  /// Throws as Gateway::call(), StoreUnavailable for a lease that has ended, and ProtocolError for a reply
  /// that cannot be read.
  TransactionReply execute(const Transaction& transaction, Instant deadline);

  /// Throws ProtocolError.
  [[noreturn]] void unexpected() const;

  /// Where the locks whose keys begin with `prefix` have their claims.
  KeyRange locksFrom(std::string_view prefix) const;
  /// Where those of one lock are,
  KeyRange claimsOf(std::string_view key) const;
  /// of them, those of shares of a single permit, which need only be counted,
  KeyRange singlePermitsOf(std::string_view key) const;
  /// and all others,
  KeyRange otherClaimsOf(std::string_view key) const;
  /// and the one of `claim`.
  std::string keyOf(const Claim& claim) const;

  /// The lock's key of a claim that is at `stored`; empty for what is no claim.
  std::optional<std::string> lockAt(std::string_view stored) const;

 private:
  const std::string root_;
};

}  // namespace lockkeeper::etcd

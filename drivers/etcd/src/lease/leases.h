#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/etcd_store.h"

namespace lockkeeper::etcd {

/// A lease that the server has granted.
struct Lease {
  std::int64_t id = 0;
  Instant from{};                      ///< Not later than the moment from which the server counts it.
  std::chrono::milliseconds length{};  ///< As the server made it.
};

/// One lease to keep alive, and what came of it.
struct KeptLease {
  std::int64_t id = 0;
  std::optional<Lease> kept{};  ///< From now on; empty: it has ended, or see `error`.
  std::optional<ErrorCode> error{};
  std::string cause{};
};

/// The leases of a cluster: whole seconds, and not less than its election timeout allows. Thread-safe.
class Leases {
 public:
  explicit Leases(EtcdStore& store) : store_(store) {}

  /// A new one, which holds nothing yet. Throws as Gateway::call() with Effect::none, and ProtocolError. One
  /// whose grant was not seen holds nothing either, and ends by itself after `ttl`.
  Lease grant(std::chrono::milliseconds ttl, Instant deadline);

  /// Lets all of them begin anew. Never throws for reasons of the store.
  void keep(std::span<KeptLease> leases, Instant deadline);

  /// Ends one that nobody needs any more, without waiting for it; otherwise it ends by itself.
  void end(std::int64_t id);

  /// Ends a lease together with the claim that it holds, unless that has moved to another one by then. Throws
  /// OutcomeUnknown when the server does not confirm it: the lease is remembered then, as one in doubt. Takes
  /// one I/O timeout at most.
  void withdraw(const std::string& claim, std::int64_t id);

  /// Makes a transaction that puts the claim at `claim` on `lease`, new and without one, and throws as it
  /// does. A lease that is certainly not used then is ended. One in doubt is remembered: endDoubted() comes
  /// with the claim's next transaction, so that a late one finds no lease to put the claim on.
  TransactionReply attach(const std::string& claim, const Lease& lease,
                          const EtcdStore::Transaction& transaction, Instant deadline);

  /// Ends the leases in doubt of a claim which has another lease now, is released, or is not granted. Those
  /// whose end the server does not confirm stay remembered. Never throws for reasons of the store.
  void endDoubted(const std::string& claim, Instant deadline);

  /// Whether a lease of this length is what grant() would give for `ttl`.
  bool fits(const Lease& lease, std::chrono::milliseconds ttl) const;

  /// How long leases run on; none for one that has ended, or whose time was not told.
  std::vector<std::optional<std::chrono::milliseconds>> remaining(std::span<const std::int64_t> ids,
                                                                  Instant deadline);

 private:
  /// One that may come to hold a claim late.
  struct Doubted {
    std::int64_t id = 0;
    std::uint64_t age = 0;  ///< Lower: in doubt for longer.
  };

  void remember(const std::string& claim, std::int64_t id);
  void remember(const std::string& claim, const Doubted& lease);

  EtcdStore& store_;
  std::atomic<std::int64_t> least_ = 1;  // seconds; as far as the server has shown
  std::mutex mutex_;
  std::multimap<std::string, Doubted> doubted_;  // by their claims
  std::uint64_t lastAge_ = 0;
};

}  // namespace lockkeeper::etcd

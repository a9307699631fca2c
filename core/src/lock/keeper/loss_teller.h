#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/relay.h"
#include "lock/keeper/lease_table.h"
#include "lock/lease/lease.h"
#include "lockkeeper/environment.h"

namespace lockkeeper::detail {

/// Ends leases that are lost, and tells each loss once: by the stop_token of the lock, and to the listener.
/// It notices by itself when a lease has ended. Its threads never ask the store, so that a loss is told in
/// time even while the store hangs. Thread-safe; functions need no mutex held unless they say so.
class LossTeller {
 public:
  /// `mutex` is the keeper's.
  LossTeller(LeaseTable& leases, const Environment& environment, std::string store, std::mutex& mutex);

  // Start, stop and await its threads, as Relay does.
  void start(const std::shared_ptr<void>& owner) { threads_.start(owner); }
  void stop() { threads_.stop(); }
  void join(std::unique_lock<std::mutex>& held, Instant until) { threads_.join(held, until); }

  /// A lease was added that ends at `end`.
  void watch(Instant end);

  /// The listener was told of the lock: from now on it may be told of its loss.
  void announced(Lease& lease);

  /// Ends the lease and takes it out of its part, whose mutex is held. Returns it if the caller has to have
  /// its loss told by tellLater().
  [[nodiscard]] static std::shared_ptr<Lease> lose(LeaseTable::Part& part, Lease& lease, LossReason reason);

  /// Has the loss told on one of its threads, so that no callback holds up the caller. If there is no memory,
  /// tells it at once. Does nothing for null.
  void tellLater(std::shared_ptr<Lease> lost) noexcept;
  /// The same for a list, which needs no memory. With the keeper's mutex held.
  void tellLater(std::list<std::shared_ptr<Lease>>& lost);

  /// Whether a lease whose end seems to have come was renewed just now. If not, it is lost from now on.
  bool stillRuns(Lease& lease);

  /// As Lease::lostToken().
  std::stop_token lostToken(Lease& lease) noexcept;

  /// The loss of the lease requests a stop of `all`, and lostToken() is a token of that. For leases that are
  /// lost together. To be called before lostToken().
  void loseTogether(Lease& lease, std::stop_source all);

 private:
  Instant due();
  std::shared_ptr<Lease> loseNext();
  void tellNext(std::unique_lock<std::mutex>& held);
  void tellRest(std::unique_lock<std::mutex>& held);
  void tell(Lease& lease);
  void fire(Lease& lease);

  LeaseTable& leases_;
  const Environment environment_;
  const std::string store_;  // its name in events
  std::mutex& mutex_;
  std::list<std::shared_ptr<Lease>> untold_;
  Relay threads_;
};

}  // namespace lockkeeper::detail

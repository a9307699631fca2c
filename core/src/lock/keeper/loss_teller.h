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

/// Ends leases that are lost, and tells each loss once: to whoever has the lock's token, and to the listener.
/// It finds those whose end has come by itself, on few threads that never talk to the store, so that a loss
/// is told in time even while the store hangs. Thread-safe; functions need no mutex held unless they say so.
class LossTeller {
 public:
  /// `mutex` is the keeper's.
  LossTeller(LeaseTable& leases, const Environment& environment, std::string store, std::mutex& mutex);

  // Its threads, as in Relay.
  void start(const std::shared_ptr<void>& owner) { threads_.start(owner); }
  void stop() { threads_.stop(); }
  void join(std::unique_lock<std::mutex>& held, Instant until) { threads_.join(held, until); }

  /// A lease that was added ends at `end`.
  void watch(Instant end);

  /// Others have heard of the lock: from now on they may hear of its loss.
  void announced(Lease& lease);

  /// The lease is lost, and is taken from its part, whose mutex is held. Returns it when its loss is to be
  /// told later.
  [[nodiscard]] static std::shared_ptr<Lease> lose(LeaseTable::Part& part, Lease& lease, LossReason reason);

  /// Tells it on a thread of its own, so that no callback holds up the caller (without memory for that, on
  /// the calling thread). Null: does nothing.
  void tellLater(std::shared_ptr<Lease> lost) noexcept;
  /// Likewise, without needing memory. With the keeper's mutex held.
  void tellLater(std::list<std::shared_ptr<Lease>>& lost);

  /// Whether a lease whose end seems to have come was renewed just now; if not, it is lost.
  bool stillRuns(Lease& lease);

  /// As Lease::lostToken().
  std::stop_token lostToken(Lease& lease) noexcept;

  /// One of several that are lost together: what its loss fires is `all`, which lostToken() then is a token
  /// of. To be called before lostToken().
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

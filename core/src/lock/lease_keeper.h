#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lock/abandoned_claims.h"
#include "lock/lease.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/listener.h"

namespace lockkeeper::detail {

/// Keeps the leases of one manager alive and says when one is lost. Two threads, whatever the number of
/// locks: the renewer talks to the store and may be held up by it; the watchman never does, so that a loss is
/// told in time even while the store hangs. Both start with the first lock. Thread-safe.
///
/// Held by shared_ptr: its threads keep it alive until they have ended.
class LeaseKeeper : public std::enable_shared_from_this<LeaseKeeper> {
 public:
  LeaseKeeper(std::shared_ptr<LockDriver> driver, Environment environment, std::string owner,
              std::chrono::nanoseconds operationTimeout, std::chrono::nanoseconds retryPause);

  /// Starts the threads, once. Apart from add(), so that no lock is taken first and then cannot be kept.
  void start();

  /// Starts to renew and watch the lease.
  void add(std::shared_ptr<Lease> lease);

  /// Ends that, because the holder releases. False when the lease was lost or released before.
  bool remove(Lease& lease);

  /// Whether a lease whose end seems to have come was renewed just now; if not, it is lost.
  bool stillRuns(Lease& lease);

  /// The outcome of one renewal, by whomever it was asked and since when. True when the lease runs on anew.
  bool renewed(Lease& lease, const Renewal& renewal, Instant began);

  /// Releases `claim` in the background, until the store has answered or `until` has come: its outcome is not
  /// known, and nobody uses it any more.
  void abandon(const Claim& claim, Instant until);

  /// Ends both threads after one more try at what was abandoned. Blocks for at most one operation.
  void shutDown();

 private:
  struct Loss;

  void watch();
  void renewAll();
  void renewBatch(std::unique_lock<std::mutex>& held);
  Instant nextRenewal() const;
  Instant nextEnd() const;
  Loss lose(Lease& lease, LossReason reason);
  void untrack(const Lease& lease);

  const std::shared_ptr<LockDriver> driver_;
  const std::string store_;  // its name in events
  const Environment environment_;
  const std::chrono::nanoseconds operationTimeout_;

  std::mutex mutex_;
  std::vector<std::shared_ptr<Lease>> leases_;
  AbandonedClaims abandoned_;
  std::condition_variable watchWakeUp_;
  std::condition_variable renewWakeUp_;
  Instant watchSleepsUntil_ = Instant::min();
  Instant renewSleepsUntil_ = Instant::min();
  bool stopping_ = false;
  std::once_flag started_;
  std::thread watchman_;
  std::thread renewer_;
};

}  // namespace lockkeeper::detail

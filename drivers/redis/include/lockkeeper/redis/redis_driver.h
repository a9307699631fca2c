#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/redis/cluster_options.h"
#include "lockkeeper/redis/export.h"
#include "lockkeeper/redis/redis_options.h"

namespace lockkeeper::redis {

/// Locks and rate limits on one Redis server (6 or later) or Valkey, on the master that sentinels name, or on
/// a Redis Cluster. A lock is the plain string `key`, set by `SET key value NX PX ttl`, so this driver and
/// other clients that do the same exclude each other. The value is the token in hexadecimal, then '@' and the
/// owner's label. The fence counter and the queue of waiters are companion keys in the same hash slot. A lock
/// that is shared is a sorted set `key`; to such clients the key looks taken.
///
/// All threads share one connection to a server. The first call makes it, and later calls make it again when
/// it is lost. A second connection wakes up those who wait, and tells those who hand a lock on that others
/// want it. There is no background thread. A server is used only if it is a master and evicts nothing (see
/// RedisOptions::allowEviction). Thread-safe.
///
/// On a cluster, each key is on the master of its slot. The driver looks up the masters at the first call,
/// and again when they change. A call that a master refuses because another one has the slot is sent to that
/// one. While a slot moves to another node, its locks are renewed, released and shown. Taking one of them,
/// and calls with several keys, may be StoreUnavailable until it has arrived; callers that wait try again.
///
/// After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks it on purpose.
class LOCKKEEPER_REDIS_EXPORT RedisDriver final : public LockDriver,
                                                  public Postable,
                                                  public Waitable,
                                                  public Batchable,
                                                  public Browsable,
                                                  public WaiterBrowsable,
                                                  public Breakable,
                                                  public DoubtReporting,
                                                  public Permits,
                                                  public RateDriver {
 public:
  /// Connects nowhere yet. Throws std::invalid_argument for options out of range, ConfigError for a CA
  /// file that cannot be used.
  explicit RedisDriver(RedisOptions options, Environment environment = {});
  /// The same on a cluster.
  explicit RedisDriver(ClusterOptions options, Environment environment = {});
  RedisDriver(const RedisDriver&) = delete;
  RedisDriver& operator=(const RedisDriver&) = delete;
  ~RedisDriver() override;

  AcquireResult acquire(const AcquireRequest& request) override;

  /// Waits in a queue beside the lock. All clients that do the same are served in the order in which they
  /// came.
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop) override;

  /// Takes one script and, with RedisOptions::minReplicas, one check of the replicas: if too few of them have
  /// the grants, all are released. On a cluster, for a caller that waits, all masters are asked at the same
  /// time, and keys behind a busy one are released. For other callers, keys of one slot (a hash tag) that
  /// follow one another are claimed by one request, which waits for the one before it: so of two such
  /// callers, one gets its keys.
  std::vector<AcquireResult> acquireInOrder(std::span<const AcquireRequest> requests) override;

  bool waitersReportedSince(Instant since) noexcept override;

  /// On a cluster, asks all masters concerned at the same time, each on a temporary thread, so that a slow
  /// master does not delay the renewals of another one.
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;

  /// The next caller that waits for a reply of its own reads this one as well.
  bool postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) override;
  void awaitPosted(Instant deadline) noexcept override;

  std::optional<Holder> holder(std::string_view key, Instant deadline) override;

  /// The durability is that of the server that was connected last, on a cluster that of one of the masters.
  Promises promises() const override;
  std::string name() const override;

  /// Also SharedRecords.
  void* findCapability(const std::type_info& type) noexcept override;

  /// Lists the locks of lockkeeper only: those of foreign clients look like any other string. Locks whose
  /// slot moves meanwhile may be missed, or make it StoreUnavailable.
  void list(std::string_view prefix, const Visit& visit, Instant deadline) override;
  std::string listBusy(std::string_view place, const std::function<bool(std::string_view key)>& wanted,
                       const Visit& visit, Instant deadline) override;

  bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) override;

  /// A doubt arises when a server is connected that replaces another one or has restarted. On a cluster it
  /// also arises when a node that was no master has slots, because it may be a replica that has taken over. A
  /// slot that moves from one master to another one causes no doubt.
  void addDoubtListener(std::weak_ptr<LossListener> listener) override;
  /// One second with sentinels and on a cluster, otherwise empty.
  std::optional<std::chrono::milliseconds> checkEvery() const override;
  /// Asks the sentinels for the master, and checks that the masters in use still answer.
  void checkServer(Instant deadline) noexcept override;

  std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline) override;

  std::vector<Holder> shareHolders(std::string_view key, Instant deadline) override;
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline) override;

  /// One script decides limits in one round trip, without waiting for replicas. On a cluster, the keys of one
  /// call need the same hash tag; otherwise a ConfigError is thrown and nothing is sent.
  void take(std::span<RateCharge> charges, Instant deadline) override;
  void peek(std::span<RateCharge> charges, Instant deadline) override;
  bool refund(const RateRefund& refund, Instant deadline) override;
  void reset(std::string_view key, RateKind kind, Instant deadline) override;
  std::size_t partOf(std::string_view key) const noexcept override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::redis

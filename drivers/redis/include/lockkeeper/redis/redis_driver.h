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

/// Locks and rate limits on one Redis server (6 or later) or Valkey, which sentinels may name, or on a Redis
/// Cluster. A lock is the plain string `key`, set by `SET key value NX PX ttl`, so that any other client that
/// does the same excludes and is excluded by us; the value is the token in hexadecimal, then '@' and the
/// owner's label. The fence counter and the queue of those who wait are companion keys in the same hash slot.
/// A lock that is shared is a sorted set `key`, which the same clients find taken.
///
/// All threads share one connection to a server, made by the first call and made again when it is lost, and
/// those who wait another one, on which they are woken up, and those who hand a lock on hear that others want
/// it; there is no background thread. A connection is used only for a master that evicts nothing (see
/// RedisOptions::allowEviction). Thread-safe.
///
/// On a cluster each key is on the master of its slot. The masters are learnt when the first call comes, and
/// again when they change; a call that a master refuses because another one has the slot is sent on to that
/// one. While a slot is on its way to another node, its locks are renewed, released and looked at; taking one
/// of them, and what needs several keys, may be StoreUnavailable until it has arrived, which callers that
/// wait sit out.
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

  /// Waits in a queue beside the lock, first come first served among all clients that do the same.
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop) override;

  /// With one script, and with RedisOptions::minReplicas one look at the replicas: where too few of them have
  /// the grants, all are given back. On a cluster, for a caller that waits, all masters are asked before the
  /// first one is waited for, and keys behind a busy one are given back. For others, the keys of one slot (a
  /// hash tag) that follow one another are claimed by one request, which waits for the one before it: so of
  /// two such callers, one gets its keys.
  std::vector<AcquireResult> acquireInOrder(std::span<const AcquireRequest> requests) override;

  bool waitersReportedSince(Instant since) noexcept override;

  /// On a cluster, asks all masters that are concerned at the same time, each on a thread of the moment, so
  /// that none makes the renewals of another one late.
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;

  /// The reply is read by the next caller that waits for one of its own.
  bool postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) override;
  void awaitPosted(Instant deadline) noexcept override;

  std::optional<Holder> holder(std::string_view key, Instant deadline) override;

  /// The durability is that of the server which was last connected, on a cluster of one of the masters.
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

  /// A doubt arises with each server that is connected in the place of another one, or after it has
  /// restarted; on a cluster also when a node that was no master has slots, which may be a replica that has
  /// taken over. A slot that moves from one master to another one leaves no doubt.
  void addDoubtListener(std::weak_ptr<LossListener> listener) override;
  /// With sentinels and on a cluster a second, otherwise empty.
  std::optional<std::chrono::milliseconds> checkEvery() const override;
  /// Asks the sentinels for the master, and the masters that have been used whether they are there.
  void checkServer(Instant deadline) noexcept override;

  std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline) override;

  std::vector<Holder> shareHolders(std::string_view key, Instant deadline) override;
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline) override;

  /// Limits are decided by one script in one round trip. On a cluster the keys of one call need one hash tag:
  /// ConfigError otherwise, with nothing sent. They do not wait for replicas.
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

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
#include "lockkeeper/redis/export.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/store/shared_records.h"

namespace lockkeeper::redis {

/// Locks and rate limits on one Redis server (6 or later) or Valkey, which sentinels may name. A lock is the
/// plain string `key`, set by `SET key value NX PX ttl`, so that any other client that does the same excludes
/// and is excluded by us; the value is the token in hexadecimal, then '@' and the owner's label. The fence
/// counter and the queue of those who wait are companion keys in the same hash slot. A lock that is shared is
/// a sorted set `key`, which the same clients find taken.
///
/// All threads share one connection, made by the first call and made again when it is lost, and those who
/// wait another one, on which they are woken up, and those who hand a lock on hear that others want it; there
/// is no background thread. A connection is used only for
/// a master that evicts nothing (see RedisOptions::allowEviction). Thread-safe.
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
  RedisDriver(const RedisDriver&) = delete;
  RedisDriver& operator=(const RedisDriver&) = delete;
  ~RedisDriver() override;

  AcquireResult acquire(const AcquireRequest& request) override;

  /// Waits in a queue beside the lock, first come first served among all clients that do the same.
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop) override;

  /// With one script, and with RedisOptions::minReplicas one look at the replicas: where too few of them have
  /// the grants, all are given back.
  std::vector<AcquireResult> acquireInOrder(std::span<const AcquireRequest> requests) override;

  bool waitersReportedSince(Instant since) noexcept override;

  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;

  /// The reply is read by the next caller that waits for one of its own.
  bool postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) override;
  void awaitPosted(Instant deadline) noexcept override;

  std::optional<Holder> holder(std::string_view key, Instant deadline) override;

  /// The durability is that of the server which was last connected.
  Promises promises() const override;
  std::string name() const override;

  /// Also SharedRecords.
  void* findCapability(const std::type_info& type) noexcept override;

  /// Lists the locks of lockkeeper only: those of foreign clients look like any other string.
  void list(std::string_view prefix,
            const std::function<bool(std::string_view key, const Holder& holder)>& visit,
            Instant deadline) override;
  void listBusy(std::string_view prefix,
                const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                Instant deadline) override;

  bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) override;

  /// A doubt arises with each server that is connected in the place of another one, or after it has
  /// restarted.
  void addDoubtListener(std::weak_ptr<LossListener> listener) override;
  /// With sentinels a second, otherwise empty.
  std::optional<std::chrono::milliseconds> checkEvery() const override;
  /// Asks the sentinels for the master, and the master whether it is there.
  void checkServer(Instant deadline) noexcept override;

  std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline) override;

  std::vector<Holder> shareHolders(std::string_view key, Instant deadline) override;
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline) override;

  /// Limits are decided by one script in one round trip. On a cluster the keys of one call need one hash tag.
  /// They do not wait for replicas.
  void take(std::span<RateCharge> charges, Instant deadline) override;
  void peek(std::span<RateCharge> charges, Instant deadline) override;
  bool refund(const RateRefund& refund, Instant deadline) override;
  void reset(std::string_view key, RateKind kind, Instant deadline) override;

 private:
  class Impl;
  std::unique_ptr<SharedRecords> records_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::redis

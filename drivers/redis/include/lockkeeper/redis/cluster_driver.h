#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/redis/cluster_options.h"
#include "lockkeeper/redis/export.h"
#include "lockkeeper/store/shared_records.h"
#include "lockkeeper/store/value_store.h"

namespace lockkeeper::redis {

/// Locks and rate limits on a Redis Cluster: each key on the master of its slot, where it is kept as
/// RedisDriver keeps it, with its companions in the same slot. The masters are learnt from the cluster when
/// the first call comes, and again when they change; a call that a master refuses because another one has the
/// slot is sent on to that one. To each master there are the connections of a RedisDriver, made when a call
/// first needs them; no background thread. Thread-safe.
///
/// While a slot is on its way to another node, its locks are renewed, released and looked at; taking one of
/// them, and what needs several keys, may be StoreUnavailable until it has arrived, which callers that wait
/// sit out.
///
/// After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks it on purpose.
class LOCKKEEPER_REDIS_EXPORT ClusterDriver final : public LockDriver,
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
  /// Connects nowhere yet. Throws std::invalid_argument for options out of range.
  explicit ClusterDriver(ClusterOptions options, Environment environment = {});
  ClusterDriver(const ClusterDriver&) = delete;
  ClusterDriver& operator=(const ClusterDriver&) = delete;
  ~ClusterDriver() override;

  AcquireResult acquire(const AcquireRequest& request) override;

  /// Waits in the queue beside the lock, and goes with it when it moves to another node.
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop) override;
  bool waitersReportedSince(Instant since) noexcept override;

  /// For a caller that waits, all masters are asked before the first one is waited for, and keys behind a
  /// busy one are given back. For others, the keys of one slot (a hash tag) that follow one another are
  /// claimed by one request, which waits for the one before it: so of two such callers, one gets its keys.
  std::vector<AcquireResult> acquireInOrder(std::span<const AcquireRequest> requests) override;

  /// Asks all masters that are concerned at the same time, each on a thread of the moment, so that none makes
  /// the renewals of another one late.
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;
  bool postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) override;
  void awaitPosted(Instant deadline) noexcept override;

  /// Claims are in doubt when a node that was no master has slots, which may be a replica that has taken
  /// over, and when a master has restarted. A slot that moves from one master to another one leaves no doubt.
  void addDoubtListener(std::weak_ptr<LossListener> listener) override;
  std::optional<std::chrono::milliseconds> checkEvery() const override;
  /// Finds out whether the masters that have been used answer, and reads the map when one does not.
  void checkServer(Instant deadline) noexcept override;

  std::optional<Holder> holder(std::string_view key, Instant deadline) override;

  /// The durability is that of one of the masters that are connected.
  Promises promises() const override;
  std::string name() const override;

  /// Also SharedRecords.
  void* findCapability(const std::type_info& type) noexcept override;

  /// Goes through the masters one after the other. Locks whose slot moves meanwhile may be missed, or make it
  /// StoreUnavailable.
  void list(std::string_view prefix,
            const std::function<bool(std::string_view key, const Holder& holder)>& visit,
            Instant deadline) override;
  void listBusy(std::string_view prefix,
                const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                Instant deadline) override;

  bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) override;

  std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline) override;
  std::vector<Holder> shareHolders(std::string_view key, Instant deadline) override;
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline) override;

  /// The keys of one call must be in one slot (a hash tag): ConfigError otherwise, with nothing sent.
  void take(std::span<RateCharge> charges, Instant deadline) override;
  void peek(std::span<RateCharge> charges, Instant deadline) override;
  bool refund(const RateRefund& refund, Instant deadline) override;
  void reset(std::string_view key, RateKind kind, Instant deadline) override;
  std::size_t partOf(std::string_view key) const noexcept override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Values on a Redis Cluster: each on the master of its key's slot, as RedisValues keeps them. Thread-safe.
class LOCKKEEPER_REDIS_EXPORT ClusterValues final : public ValueStore {
 public:
  /// As ClusterDriver.
  explicit ClusterValues(ClusterOptions options, Environment environment = {});
  ~ClusterValues() override;

  std::optional<std::string> get(std::string_view key, Instant deadline) override;
  void put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override;
  bool add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override;
  bool erase(std::string_view key, Instant deadline) override;
  void announce(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                Instant deadline) override;
  std::optional<std::string> await(std::string_view key, Instant until, const std::stop_token& stop,
                                   Instant deadline) override;
  std::size_t partOf(std::string_view key) const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::redis

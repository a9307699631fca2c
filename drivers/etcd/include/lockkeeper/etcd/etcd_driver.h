#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/etcd/etcd_options.h"
#include "lockkeeper/etcd/export.h"

namespace lockkeeper::etcd {

/// Locks on etcd 3.4 or later, over its HTTP gateway. Each claim is a separate key below `PREFIX/KEY/`, with
/// a separate lease. Of the claims for a lock, the one with the lowest create revision holds it; if the lock
/// is shared, as many of the first claims hold it as there are permits. The create revision is the fence. A
/// call asks the members one after the other until one answers.
///
/// Threads take connections from a pool. Waiting threads share one watch stream, which one of them reads for
/// all. There is no background thread. Thread-safe.
///
/// After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks it on purpose.
class LOCKKEEPER_ETCD_EXPORT EtcdDriver final : public LockDriver,
                                                public Waitable,
                                                public Browsable,
                                                public Breakable,
                                                public Permits,
                                                public LossReporting {
 public:
  /// Does not connect yet. Throws std::invalid_argument for options out of range, and ConfigError for
  /// certificates that cannot be used.
  explicit EtcdDriver(EtcdOptions options, Environment environment = {});
  EtcdDriver(const EtcdDriver&) = delete;
  EtcdDriver& operator=(const EtcdDriver&) = delete;
  ~EtcdDriver() override;

  /// A lease lasts a whole number of seconds, and at least as long as the cluster's election timeout demands.
  AcquireResult acquire(const AcquireRequest& request) override;

  /// First come, first served among all clients; a release wakes up the next waiter and no other.
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop) override;

  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;
  std::optional<Holder> holder(std::string_view key, Instant deadline) override;
  Promises promises() const override;
  std::string name() const override;
  void* findCapability(const std::type_info& type) noexcept override;

  void list(std::string_view prefix, const Visit& visit, Instant deadline) override;
  std::string listBusy(std::string_view place, const std::function<bool(std::string_view key)>& wanted,
                       const Visit& visit, Instant deadline) override;
  bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) override;

  std::vector<Holder> shareHolders(std::string_view key, Instant deadline) override;
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline) override;

  /// Reports a lock that this driver breaks before breakLock() returns. If another client breaks a lock, this
  /// driver reports it at once while one of its threads waits for any lock, and otherwise at the next
  /// renewal.
  void addLossListener(std::weak_ptr<LossListener> listener) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::etcd

#pragma once

#include <memory>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

class StoreRegistry;

/// `memory:`, the embedded store: locks and rate limits of this process, in its memory, on the given clock.
/// Waiters are served in the order in which they came. Fences increase while the object lives. Thread-safe.
/// After fork() the child's copy throws ForkedError.
class LOCKKEEPER_CORE_EXPORT MemoryDriver final : public LockDriver,
                                                  public Waitable,
                                                  public Batchable,
                                                  public Browsable,
                                                  public WaiterBrowsable,
                                                  public Breakable,
                                                  public LossReporting,
                                                  public Permits,
                                                  public RateDriver {
 public:
  /// `clock` decides when leases and waits end.
  explicit MemoryDriver(std::shared_ptr<Clock> clock = systemClock());
  ~MemoryDriver() override;

  AcquireResult acquire(const AcquireRequest& request) override;
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop) override;
  std::vector<AcquireResult> acquireInOrder(std::span<const AcquireRequest> requests) override;
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;
  std::optional<Holder> holder(std::string_view key, Instant deadline) override;
  Promises promises() const override;
  std::string name() const override { return "memory:"; }

  /// Also SharedRecords.
  void* findCapability(const std::type_info& type) noexcept override;

  void list(std::string_view prefix, const Visit& visit, Instant deadline) override;
  std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline) override;
  bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) override;

  /// Reports holders whose key breakLock() has freed.
  void addLossListener(std::weak_ptr<LossListener> listener) override;

  std::vector<Holder> shareHolders(std::string_view key, Instant deadline) override;
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline) override;

  void take(std::span<RateCharge> charges, Instant deadline) override;
  void peek(std::span<RateCharge> charges, Instant deadline) override;
  bool refund(const RateRefund& refund, Instant deadline) override;
  void reset(std::string_view key, RateKind kind, Instant deadline) override;
  bool isLocal() const noexcept override { return true; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The embedded store.
namespace memory {
/// Adds the scheme `memory:` to `registry`. Each opened URI is a store of its own.
LOCKKEEPER_CORE_EXPORT void use(StoreRegistry& registry);
}  // namespace memory

}  // namespace lockkeeper

#pragma once

#include <memory>

#include "lockkeeper/capabilities.h"
#include "lockkeeper/clock.h"

namespace lockkeeper {

class StoreRegistry;

/// `memory:`, the embedded store: locks of this process, in its memory. Leases end on the given clock,
/// waiters are served first come, first served, fences increase while the object lives. Thread-safe.
class MemoryDriver final : public LockDriver, public Waitable, public Browsable, public Breakable {
 public:
  explicit MemoryDriver(std::shared_ptr<Clock> clock = systemClock());
  ~MemoryDriver() override;

  AcquireResult acquire(const AcquireRequest& request) override;
  AcquireResult acquireWaiting(const AcquireRequest& request, Instant waitUntil,
                               std::stop_token stop) override;
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;
  std::optional<Holder> holder(std::string_view key, Instant deadline) override;
  Promises promises() const override;
  void list(std::string_view prefix,
            const std::function<bool(std::string_view key, const Holder& holder)>& visit,
            Instant deadline) override;
  bool breakLock(std::string_view key, Instant deadline) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace memory {
/// Adds the scheme `memory:` to `registry`. Each opened URI is a store of its own.
void use(StoreRegistry& registry);
}  // namespace memory

}  // namespace lockkeeper

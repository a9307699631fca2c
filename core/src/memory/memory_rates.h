#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lockkeeper/driver/fork_guard.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/driver/rate_rules.h"
#include "lockkeeper/internal/string_map.h"

namespace lockkeeper::detail {

/// Rate limits of this process, on the given clock. Thread-safe.
class MemoryRates final : public RateDriver {
 public:
  explicit MemoryRates(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  void take(std::span<RateCharge> charges, Instant deadline) override;
  void peek(std::span<RateCharge> charges, Instant deadline) override;
  bool refund(const RateRefund& refund, Instant deadline) override;
  void reset(std::string_view key, RateKind kind, Instant deadline) override;
  bool isLocal() const noexcept override { return true; }

 private:
  struct Cell {
    RateState state;
    RateLog log;
    std::int64_t expiry = 0;  // µs: as good as none from then on
  };
  using Cells = StringMap<Cell>;

  std::int64_t now() const;
  Cells& cellsOf(RateKind kind);
  bool lookAtAll(std::span<RateCharge> charges, std::int64_t now);
  void charge(RateCharge& charge, std::int64_t now);
  void sweep(Cells& cells, std::int64_t now);

  std::unique_lock<std::mutex> enter() {
    forkGuard_.check();
    return std::unique_lock(mutex_);
  }

  const std::shared_ptr<Clock> clock_;
  const ForkGuard forkGuard_;  // in a forked child, another thread of the parent may hold the mutex for ever
  std::mutex mutex_;
  std::array<Cells, 3> cells_;  // of buckets, sliding windows, fixed windows
  std::array<std::size_t, 3> sweepAt_{1024, 1024, 1024};
};

}  // namespace lockkeeper::detail

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/driver/rate_rules.h"
#include "lockkeeper/internal/string_map.h"
#include "memory/process_mutex.h"

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

  const std::shared_ptr<Clock> clock_;
  ProcessMutex mutex_;
  std::array<Cells, 3> cells_;  // of buckets, sliding windows, fixed windows
  std::array<std::size_t, 3> sweepAt_{1024, 1024, 1024};
};

}  // namespace lockkeeper::detail

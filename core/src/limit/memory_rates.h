#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/internal/process_mutex.h"
#include "lockkeeper/internal/string_map.h"
#include "lockkeeper/limit/rate_rules.h"

namespace lockkeeper::detail {

/// Rate limits of this process, on the given clock. Its time is UTC as it was when this was made, so that it
/// has the calendar's windows and still never goes back. Thread-safe.
class MemoryRates final : public RateDriver {
 public:
  /// While `mostKeys` are in use, new keys are refused; those that are full again leave once a second.
  explicit MemoryRates(std::shared_ptr<Clock> clock,
                       std::size_t mostKeys = std::numeric_limits<std::size_t>::max());

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
  bool isNew(const RateCharge& charge);
  bool makeRoom(std::span<const RateCharge> charges, std::int64_t now);
  void refuseNew(std::span<RateCharge> charges, std::int64_t now);
  bool peekAll(std::span<RateCharge> charges, std::int64_t now);
  void charge(RateCharge& charge, std::int64_t now);
  static void clear(Cells& cells, std::int64_t now);
  void sweep(Cells& cells, std::int64_t now);

  const std::shared_ptr<Clock> clock_;
  const std::chrono::nanoseconds sinceEpoch_;  // of the clock's zero
  const std::size_t mostKeys_;
  ProcessMutex mutex_;
  std::array<Cells, 3> cells_;  // of buckets, sliding windows, fixed windows
  std::array<std::size_t, 3> sweepAt_{1024, 1024, 1024};
  std::int64_t nextRoom_ = 0;  // when to look for keys that can leave for new ones
};

}  // namespace lockkeeper::detail

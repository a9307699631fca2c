#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>

#include "lockkeeper/driver/clock.h"

namespace lockkeeper::detail {

/// The keys for which callers of this process have lately stood in the store's queue: who asks for one again
/// does well to get in line at once. A hint, by hashes: one key may be taken for another. Thread-safe.
class RecentWaits {
 public:
  void note(std::size_t keyHash, Instant now) noexcept {
    until_[keyHash % size].store(now + keptFor, std::memory_order_relaxed);
  }

  bool has(std::size_t keyHash, Instant now) const noexcept {
    return now < until_[keyHash % size].load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t size = 64;
  static constexpr std::chrono::seconds keptFor{1};

  std::array<std::atomic<Instant>, size> until_{};
};

}  // namespace lockkeeper::detail

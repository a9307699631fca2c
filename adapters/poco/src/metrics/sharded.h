#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockkeeper::poco {

/// A number that only grows. Each one stands for itself: no order between two of them is promised.
class Count {
 public:
  void add(std::uint64_t more = 1) noexcept { value_.fetch_add(more, std::memory_order_relaxed); }
  std::uint64_t read() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

/// Several copies of `Counts`, of which each thread writes to one, so that threads seldom write to the same
/// cache line; a sum over all of them is what was counted. Thread-safe.
template <class Counts>
class Sharded {
 public:
  static constexpr std::size_t shardCount = 8;

  Counts& mine() noexcept { return shards_[threadNumber() % shardCount].counts; }

  /// The sum of `part(counts).read()`.
  template <class Part>
  std::uint64_t sum(Part part) const {
    std::uint64_t all = 0;
    for (const Shard& each : shards_) all += part(each.counts).read();
    return all;
  }

 private:
  struct alignas(64) Shard {
    Counts counts{};
  };

  static std::size_t threadNumber() noexcept {
    static std::atomic<std::size_t> threads = 0;
    thread_local const std::size_t own = threads.fetch_add(1, std::memory_order_relaxed);
    return own;
  }

  std::array<Shard, shardCount> shards_{};
};

}  // namespace lockkeeper::poco

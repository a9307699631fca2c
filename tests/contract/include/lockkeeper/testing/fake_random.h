#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <span>

#include "lockkeeper/base/random.h"

namespace lockkeeper::testing {

/// Random bytes that a seed repeats. Two objects of one seed give the same bytes for the same calls, so a
/// test computes the jitter that it expects with a second one. Thread-safe. Not for tokens of real locks.
class FakeRandom final : public Random {
 public:
  /// The same seed gives the same bytes.
  explicit FakeRandom(std::uint64_t seed = 1) : generator_(seed) {}

  void fill(std::span<std::byte> out) override {
    std::lock_guard guard(mutex_);
    for (std::byte& byte : out) byte = static_cast<std::byte>(generator_() & 0xffU);
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 generator_;
};

}  // namespace lockkeeper::testing

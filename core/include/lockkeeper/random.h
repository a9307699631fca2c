#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lockkeeper {

/// A source of random bytes for tokens and jitter. Implementations are thread-safe.
class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(std::span<std::byte> out) = 0;

  /// A number in [0, bound]. The bias of the modulo is far below what jitter could show.
  std::uint64_t upTo(std::uint64_t bound);
};

/// The kernel's generator (getrandom), read in blocks. A forked child never repeats its parent's bytes.
std::shared_ptr<Random> systemRandom();

}  // namespace lockkeeper

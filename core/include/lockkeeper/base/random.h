#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// A source of random bytes for tokens and jitter. Implementations are thread-safe.
class LOCKKEEPER_CORE_EXPORT Random {
 public:
  virtual ~Random() = default;
  /// Overwrites all of `out`. Throws std::system_error when there are no random bytes.
  virtual void fill(std::span<std::byte> out) = 0;

  /// A number in [0, bound], for jitter: its modulo bias does not matter there.
  std::uint64_t upTo(std::uint64_t bound);
};

/// The kernel's generator (getrandom), read in blocks. A forked child never repeats its parent's bytes.
LOCKKEEPER_CORE_EXPORT std::shared_ptr<Random> systemRandom();

}  // namespace lockkeeper

#pragma once

#include <atomic>
#include <string_view>

#include "store/redis_store.h"

namespace lockkeeper::redis {

/// Whether the user may do all that locks need: asked once, before the first claim, since a right that only a
/// release needs would be missed when the lock is held. Thread-safe.
class Rights {
 public:
  explicit Rights(RedisStore& store) : store_(store) {}

  /// Throws ConfigError that names what is missing, StoreUnavailable when the server does not say. Asks no
  /// more once nothing was missing.
  void check(std::string_view key, Instant deadline) {
    if (!complete_.load(std::memory_order_relaxed)) ask(key, deadline);
  }

 private:
  void ask(std::string_view key, Instant deadline);

  RedisStore& store_;
  std::atomic<bool> complete_ = false;
};

}  // namespace lockkeeper::redis

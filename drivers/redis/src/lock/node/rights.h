#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "store/redis_store.h"

namespace lockkeeper::redis {

/// Whether the user may do all that locks need: asked once of each server, before the first claim, since a
/// right that only a release needs would be missed when the lock is held. Redis replicates no rights, and a
/// restart may forget them. Thread-safe.
class Rights {
 public:
  explicit Rights(RedisStore& store) : store_(store) {}

  /// Throws ConfigError that names what is missing, StoreUnavailable when the server does not say. Asks a
  /// server no more once nothing was missing there.
  void check(std::string_view key, Instant deadline) {
    if (completeOn_.load(std::memory_order_relaxed) != server_.load(std::memory_order_relaxed))
      ask(key, deadline);
  }

  /// The server is another one now, or has restarted. Does not block.
  void serverChanged() { ++server_; }

 private:
  void ask(std::string_view key, Instant deadline);

  RedisStore& store_;
  std::atomic<std::uint64_t> server_ = 1;  // counts them
  std::atomic<std::uint64_t> completeOn_ = 0;
};

}  // namespace lockkeeper::redis

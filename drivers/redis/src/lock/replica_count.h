#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "store/redis_store.h"

namespace lockkeeper::redis {

/// Asks, with WAIT, how many replicas have what a connection has written. The server answers nothing else on
/// that connection meanwhile, for up to replicaTimeout; so there is one WAIT at a time, and callers that come
/// while it runs share the next one: a replica that stands still costs each of them that much twice, however
/// many they are. Thread-safe.
class ReplicaCount {
 public:
  explicit ReplicaCount(RedisStore& store) : store_(store) {}

  /// How many replicas have what was written, and answered, on `connection` (Answer::connection): 0 when that
  /// one has ended or no answer has come by `deadline`. May take replicaTimeout and the I/O timeout longer,
  /// since it asks for others too.
  std::int64_t having(std::uint64_t connection, Instant deadline);

 private:
  struct Turn;

  void ask(Turn& turn, Instant deadline);

  RedisStore& store_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool asking_ = false;
  std::shared_ptr<Turn> next_;  // of those that came since the present WAIT was sent
};

}  // namespace lockkeeper::redis

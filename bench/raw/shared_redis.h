#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "raw_redis.h"

namespace lockkeeper::bench {

/// One connection of hiredis for several threads, in the simplest way that lets none of them wait for the
/// answer of another one before it asks. Thread-safe.
class SharedRedis {
 public:
  explicit SharedRedis(std::uint16_t port) : connection_(port) {}

  /// As RawRedis::ask(). Each thread sends its own command; one of those who wait reads for all.
  std::int64_t ask(Words words);

 private:
  struct Call {
    std::optional<std::int64_t> answer{};
    std::condition_variable toldOrToRead{};
  };

  void readUntilAnswered(const Call& own, std::unique_lock<std::mutex>& held);

  std::mutex mutex_;
  RawRedis connection_;
  std::deque<Call*> calls_;  // in the order of their answers
  bool isRead_ = false;      // by a thread, which may call read() without the mutex
};

}  // namespace lockkeeper::bench

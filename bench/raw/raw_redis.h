#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct redisContext;

namespace lockkeeper::bench {

/// The floor: two hiredis round trips a pair, a plain SET NX PX and a compare-and-delete script. Not
/// thread-safe.
class RawRedis {
 public:
  explicit RawRedis(std::uint16_t port);

  /// Throws std::runtime_error unless the lock was taken and freed.
  void pair(const std::string& key);

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };
  std::unique_ptr<redisContext, Free> context_;
  std::string releaseSha_;
};

}  // namespace lockkeeper::bench

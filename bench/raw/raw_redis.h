#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct redisContext;

namespace lockkeeper::bench {

/// The floor: hiredis, and nothing else. Not thread-safe.
class RawRedis {
 public:
  explicit RawRedis(std::uint16_t port);

  /// One round trip that does nothing. Throws std::runtime_error when it fails.
  void ping();

  /// Two round trips: a plain SET NX PX and a compare-and-delete script. Throws std::runtime_error unless the
  /// lock was taken and freed.
  void pair(const std::string& key);

  /// The driver's own scripts, for fenced locks of these keys, in one round trip for all of them. Throws as
  /// pair() does.
  void pairsTogether(const std::vector<std::string>& keys);

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };
  std::unique_ptr<redisContext, Free> context_;
  std::string releaseSha_;
  std::string fencedAcquireSha_;
  std::string queueReleaseSha_;
};

}  // namespace lockkeeper::bench

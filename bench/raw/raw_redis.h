#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct redisContext;

namespace lockkeeper::bench {

/// The floor: hiredis, and nothing else. Not thread-safe.
class RawRedis {
 public:
  explicit RawRedis(std::uint16_t port);

  /// One round trip that does nothing. Throws std::runtime_error when it fails.
  void ping();

  /// Two round trips: a plain SET NX PX and a compare-and-delete script. As all that follow, throws
  /// std::runtime_error unless the lock was taken and freed.
  void pair(const std::string& key);

  /// As pair(), on all of these servers at once: each is asked before the first one is waited for.
  static void pairOnAll(std::span<RawRedis> servers, const std::string& key);

 private:
  void addSet(const std::string& key);
  void addRelease(const std::string& key);
  void send();
  void expect(int replyType);

  struct Free {
    void operator()(redisContext* context) const;
  };
  std::unique_ptr<redisContext, Free> context_;
  std::string releaseSha_;
};

}  // namespace lockkeeper::bench

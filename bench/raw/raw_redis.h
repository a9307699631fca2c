#pragma once

#include <cstdint>
#include <memory>
#include <span>
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

  /// Two round trips: a plain SET NX PX and a compare-and-delete script. As all that follow, throws
  /// std::runtime_error unless the lock was taken and freed.
  void pair(const std::string& key);

  /// As pair(), but the release is sent and not waited for: its reply is read by the next call, or by
  /// awaitPosted().
  void postedPair(const std::string& key);
  void awaitPosted();

  /// As pair(), on all of these servers at once: each is asked before the first one is waited for.
  static void pairOnAll(std::span<RawRedis> servers, const std::string& key);

  /// As pair(), with the driver's own script for a release, which looks for waiters too.
  void queuedPair(const std::string& key);

  /// Two round trips: the driver's own scripts for a fenced lock.
  void fencedPair(const std::string& key);

  /// The same for all of these keys in one round trip.
  void fencedPairsTogether(const std::vector<std::string>& keys);

 private:
  void addSet(const std::string& key);
  void addRelease(const std::string& key);
  void addQueuedRelease(const std::string& key);
  void addFencedAcquire(const std::string& key);
  void addFencedRelease(const std::string& key);
  void send();
  void expect(int replyType);

  struct Free {
    void operator()(redisContext* context) const;
  };
  std::unique_ptr<redisContext, Free> context_;
  bool releasePosted_ = false;
  std::string releaseSha_;
  std::string fencedAcquireSha_;
  std::string queueReleaseSha_;
};

}  // namespace lockkeeper::bench

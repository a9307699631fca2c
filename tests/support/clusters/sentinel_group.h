#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "redis_server.h"

namespace lockkeeper::test {

struct SentinelGroupOptions {
  std::size_t replicas = 2;
  std::vector<std::string> arguments{};  ///< For each server, such as "--min-replicas-to-write", "1".
  std::string sentinelPassword{};        ///< Of the sentinels.
};

/// A master of the name "mymaster" with replicas, and three sentinels that watch it: a server that does not
/// answer for a second is down. Killed when the object ends. One thread at a time.
class SentinelGroup {
 public:
  /// Returns when the replicas are linked and the sentinels know them and each other.
  explicit SentinelGroup(SentinelGroupOptions options = {});
  SentinelGroup(const SentinelGroup&) = delete;
  SentinelGroup& operator=(const SentinelGroup&) = delete;

  /// redis+sentinel://…/mymaster
  std::string uri(const std::string& query = "") const;

  /// The one that was the master at first.
  RedisServer& first() { return *servers_[0]; }
  RedisServer& server(std::size_t index) { return *servers_[index]; }
  std::size_t size() const { return servers_.size(); }
  RedisServer& sentinel(std::size_t index) { return *sentinels_[index]; }

  /// The server that two sentinels at least name; null when there is none.
  RedisServer* master() const;
  /// Waits until they name another one than the first. Throws std::runtime_error when they do not.
  RedisServer& awaitFailover() const;

  /// From now on the first one refuses the sentinels, and nobody else: to them it is down.
  void cutOffSentinels();

 private:
  bool settled() const;

  const SentinelGroupOptions options_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

}  // namespace lockkeeper::test

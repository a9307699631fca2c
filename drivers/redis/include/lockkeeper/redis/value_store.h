#pragma once

#include <memory>

#include "lockkeeper/environment.h"
#include "lockkeeper/redis/cluster_options.h"
#include "lockkeeper/redis/export.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/store/value_store.h"

namespace lockkeeper::redis {

/// Values on one Redis server (6 or later) or Valkey, or on a Redis Cluster, each on the master of its key's
/// slot: the plain string `:lockkeeper:v:KEY` with an expiry. Each server has a connection of its own for
/// them, made by the first call and made again when it is lost, so that large values delay no lock. Values,
/// like locks, are only kept on a master that evicts nothing (see RedisOptions::allowEviction); they do not
/// wait for replicas. Thread-safe.
///
/// After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks it on purpose.
class LOCKKEEPER_REDIS_EXPORT RedisValues final : public ValueStore {
 public:
  /// Connects nowhere yet. Throws std::invalid_argument for options out of range, ConfigError for a CA
  /// file that cannot be used.
  explicit RedisValues(RedisOptions options, Environment environment = {});
  /// The same on a cluster.
  explicit RedisValues(ClusterOptions options, Environment environment = {});
  ~RedisValues() override;

  std::optional<std::string> get(std::string_view key, Instant deadline) override;
  void put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override;
  bool add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override;
  bool erase(std::string_view key, Instant deadline) override;
  void announce(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                Instant deadline) override;
  std::optional<std::string> await(std::string_view key, Instant until, const std::stop_token& stop,
                                   Instant deadline) override;
  std::size_t partOf(std::string_view key) const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::redis

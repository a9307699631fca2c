#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockkeeper/redis/export.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::redis {

/// Which Redis Cluster, and how to talk to its nodes.
struct LOCKKEEPER_REDIS_EXPORT ClusterOptions {
  /// A node of the cluster, of any role.
  struct Seed {
    std::string host;  ///< As RedisOptions has it.
    std::uint16_t port = 6379;
  };

  std::vector<Seed> seeds;  ///< Nodes that are asked for the others: 1 to 64. Name several: one may be down.

  /// For all nodes. Host, port and socket are not used; the database must be 0. TLS is the URI's `tls=on`.
  RedisOptions node;

  /// Reads redis+cluster:// URIs. Throws ConfigError that names the wrong part and what is allowed. Reads
  /// passwordFile; connects nowhere.
  static ClusterOptions fromUri(const StoreUri& uri);

  /// Throws std::invalid_argument for a seed that is wrong or named twice, another database than 0, and what
  /// RedisOptions::check() refuses.
  void check() const;

  /// For messages: scheme and seeds, no secret.
  std::string display() const;
};

}  // namespace lockkeeper::redis

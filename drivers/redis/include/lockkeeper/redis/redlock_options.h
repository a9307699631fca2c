#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/redis/export.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::redis {

/// Which Redis masters vote, and by which rules. Fields are named as their URI parameters.
struct LOCKKEEPER_REDIS_EXPORT RedlockOptions {
  /// At least 3, all different and independent of each other (no replication between them). Their `fence`
  /// and `minReplicas` are not used.
  std::vector<RedisOptions> nodes;

  /// For how long clients must have observed that a node has not restarted before it votes, since a node that
  /// restarts may have forgotten its votes. Also the longest ttl that a lock may have: 1 s to 24 h. Empty (`off`): a restarted node votes at
  /// once, and a lock that it had voted for may get a second holder.
  std::optional<std::chrono::milliseconds> restartGuard{std::chrono::seconds{60}};

  /// Declares that the nodes run, and have always run, with `appendonly yes` and `appendfsync always`: a node
  /// that is found to do so votes at once after a restart. (`appendfsync=always`)
  bool appendFsyncAlways = false;

  /// How much the clocks of nodes and clients may drift apart during one ttl, in percent of it (plus 2 ms): 1
  /// to 25.
  std::uint32_t drift = 1;

  /// A grant with less than so many percent of the ttl left is given back: 1 to 90.
  std::uint32_t minValidity = 50;

  /// How long a round waits for a node: 1 ms to 1 h. Default: a twentieth of the ttl, at least 50 ms.
  std::optional<std::chrono::milliseconds> nodeTimeout{};

  /// Reads redlock://[user:password@]host[:port],…[/db] URIs. The database and the parameter `tls` have one
  /// value for all nodes, or one for each: /0,3,0?tls=on,off,off. Throws ConfigError that names the wrong
  /// part and what is allowed. Reads passwordFile; connects nowhere.
  static RedlockOptions fromUri(const StoreUri& uri);

  /// Throws std::invalid_argument for fewer than 3 nodes, for a node that is given twice, and for values out
  /// of range.
  void check() const;

  /// For messages: scheme and addresses, no secret.
  std::string display() const;
};

}  // namespace lockkeeper::redis

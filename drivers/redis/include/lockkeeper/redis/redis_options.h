#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/redis/export.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::redis {

/// Who knows which of several servers is the master: the sentinels.
struct LOCKKEEPER_REDIS_EXPORT SentinelOptions {
  std::string master;                  ///< The name that they know it by.
  std::vector<std::string> hosts{};    ///< 1 to 31. More than half of them have to agree.
  std::vector<std::uint16_t> ports{};  ///< Of each host.
  std::string user{};                  ///< Of an ACL of the sentinels (`sentinelUser`).
  std::string password{};              ///< From `sentinelPasswordFile`.
  bool tls = false;                    ///< `sentinelTls`; with the same files as the master.
};

/// How a server of a Redis Cluster is used. Set by the driver of redis+cluster://, not by applications.
enum class ClusterUse {
  none,           ///< It must be no part of a cluster.
  node,           ///< A master, for the slots that it has.
  importingNode,  ///< A master, for slots that are on their way to it.
  informant,      ///< Any node, to be asked what it knows of the cluster.
};

/// Which Redis, and how to talk to it. Each field says its URI parameter where the name differs.
struct LOCKKEEPER_REDIS_EXPORT RedisOptions {
  std::string host = "127.0.0.1";  ///< A name, an IPv4 or an IPv6 address (without brackets).
  std::uint16_t port = 6379;
  std::string unixPath;                     ///< The path of a Unix socket, in place of host and port.
  std::optional<SentinelOptions> sentinel;  ///< In place of host and port, too: they name both.
  std::uint32_t database = 0;
  ClusterUse cluster = ClusterUse::none;

  std::string user;      ///< Of an ACL; empty for the default user.
  std::string password;  ///< Empty for none. From the URI, or `passwordFile` (its first line).

  bool tls = false;    ///< Encrypted, with the host name verified: the scheme `rediss`, or `tls=on`.
  std::string caFile;  ///< PEM file of the authorities to trust; empty for the system's own.

  /// PEM files of the certificate that the server may ask for, with those between it and its authority, and
  /// of its key without a pass phrase. Both or none.
  /// @{
  std::string certFile;
  std::string keyFile;
  /// @}

  /// Grants carry a fence. Without (`fence=off`), taking a lock is the bare `SET key value NX PX ttl`.
  bool fence = true;
  /// How long the counter of a key's fences stays after the key was used last: 1 s to 365 days. A shorter
  /// time saves 150 bytes for each key that is used once; a longer one keeps fences increasing though the
  /// server's clock is set back by as much. A lock that is held for longer has no fence in Holder any more.
  std::chrono::milliseconds fenceKept{std::chrono::days{7}};

  /// Accept a server that may evict locks when its memory is full. For caches whose locks only save work.
  bool allowEviction = false;

  /// How many replicas must have a grant before it counts: 0 (none) to 100.
  std::uint32_t minReplicas = 0;
  std::chrono::milliseconds replicaTimeout{100};  ///< How long to wait for them: 1 ms to 10 s.

  /// For looking up the host, connecting, TLS and log-in together: 1 ms to 1 h.
  std::chrono::milliseconds connectTimeout{2000};

  std::chrono::milliseconds ioTimeout{
      2000};  ///< How long the server may answer nothing; then the connection is given up: 1 ms to 1 h.

  std::string clientName = "lockkeeper";  ///< What CLIENT LIST shows: printable, without spaces.

  /// Reads redis://, rediss://, redis+unix:// and redis+sentinel:// URIs. Throws ConfigError that names the
  /// wrong part and what is allowed. Reads passwordFile; connects nowhere.
  static RedisOptions fromUri(const StoreUri& uri);

  /// Throws std::invalid_argument for a number or a duration out of range.
  void check() const;

  /// For messages: scheme, address and database, no secret.
  std::string display() const;
};

}  // namespace lockkeeper::redis

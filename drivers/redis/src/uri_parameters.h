#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lockkeeper/internal/as_configured.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::redis {

// What the URIs of all stores on Redis have in common. All throw ConfigError that names the value and what is
// allowed; `out` keeps its value when the URI says nothing.

/// The options that a URI has said, checked.
template <class Options>
Options checked(Options options) {
  asConfigured("", [&] { options.check(); });
  return options;
}

/// The ranges of connectTimeout and ioTimeout, which RedisOptions::check() keeps, too.
inline constexpr std::chrono::milliseconds shortestTimeout{1};
inline constexpr std::chrono::milliseconds longestTimeout{std::chrono::hours{1}};

/// Allows the parameters `own`, those that readLogin() and readCommon() read, and the files among them only
/// with `tls`.
void allowOnly(const StoreUri& uri, std::vector<std::string_view> own, bool tls);

void readDatabase(std::string_view text, std::uint32_t& out);

/// Host and port.
void readHost(const Endpoint& endpoint, RedisOptions& options);

/// Host, port and database.
void readAddress(const StoreUri& uri, const Endpoint& endpoint, RedisOptions& options);

/// User and password, or passwordFile. `endpoint` is null where the URI has none.
void readLogin(const StoreUri& uri, const Endpoint* endpoint, RedisOptions& options);

/// clientName, allowEviction, connectTimeout, ioTimeout and, only with `tls`, caFile, certFile and keyFile.
void readCommon(const StoreUri& uri, bool tls, RedisOptions& options);

/// fence, fenceKept, minReplicas and replicaTimeout, whose ranges RedisOptions::check() keeps.
void readLockSettings(const StoreUri& uri, RedisOptions& options);

}  // namespace lockkeeper::redis

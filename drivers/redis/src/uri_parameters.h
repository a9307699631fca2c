#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/store_uri.h"
#include "lockkeeper/redis/redis_options.h"

namespace lockkeeper::redis {

// What the URIs of all stores on Redis have in common. All throw ConfigError that names the value and what is
// allowed; `out` keeps its value when the URI says nothing.

/// Allows the parameters `own`, those that readLogin() and readCommon() read, and the files among them only
/// with `tls`.
void allowOnly(const StoreUri& uri, std::vector<std::string_view> own, bool tls);

void readDuration(const StoreUri& uri, std::string_view name, std::chrono::milliseconds least,
                  std::chrono::milliseconds most, std::chrono::milliseconds& out);
void readDatabase(std::string_view text, std::uint32_t& out);

/// Host and port.
void readHost(const Endpoint& endpoint, RedisOptions& options);

/// Host, port and database.
void readAddress(const StoreUri& uri, const Endpoint& endpoint, RedisOptions& options);

/// User and password, or passwordFile. `endpoint` is null where the URI has none.
void readLogin(const StoreUri& uri, const Endpoint* endpoint, RedisOptions& options);

/// caFile, certFile, keyFile, clientName, allowEviction, connectTimeout, ioTimeout.
void readCommon(const StoreUri& uri, RedisOptions& options);

}  // namespace lockkeeper::redis

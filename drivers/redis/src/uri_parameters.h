#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/store_uri.h"
#include "lockkeeper/error.h"
#include "lockkeeper/redis/redis_options.h"

namespace lockkeeper::redis {

// What the URIs of all stores on Redis have in common. All throw ConfigError that names the value and what is
// allowed; `out` keeps its value when the URI says nothing.

/// What a URI has said; what check() refuses of it is an error of the configuration, not of the program.
template <class Options>
Options asConfigured(Options options) {
  try {
    options.check();
  } catch (const std::invalid_argument& wrong) {
    throw ConfigError(wrong.what());
  }
  return options;
}

/// The ranges of connectTimeout and ioTimeout, which RedisOptions::check() keeps, too.
inline constexpr std::chrono::milliseconds shortestTimeout{1};
inline constexpr std::chrono::milliseconds longestTimeout{std::chrono::hours{1}};

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

/// The first line of the file that the parameter names.
void readPasswordFile(const StoreUri& uri, std::string_view name, std::string& out);

/// User and password, or passwordFile. `endpoint` is null where the URI has none.
void readLogin(const StoreUri& uri, const Endpoint* endpoint, RedisOptions& options);

/// caFile, certFile, keyFile, clientName, allowEviction, connectTimeout, ioTimeout.
void readCommon(const StoreUri& uri, RedisOptions& options);

}  // namespace lockkeeper::redis

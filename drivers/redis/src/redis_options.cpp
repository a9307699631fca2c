#include "lockkeeper/redis/redis_options.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"
#include "uri_parameters.h"

namespace lockkeeper::redis {

namespace {

constexpr std::chrono::milliseconds longestReplicaTimeout{std::chrono::seconds{10}};
constexpr std::uint32_t mostReplicas = 100;
constexpr std::size_t longestUnixPath = 107;  // sockaddr_un::sun_path without its final 0

void readTcpAddress(const StoreUri& uri, RedisOptions& options) {
  if (uri.endpoints().size() != 1 || uri.endpoints()[0].host.empty()) {
    throw ConfigError(uri.scheme() + " takes exactly one host");
  }
  readAddress(uri, uri.endpoints()[0], options);
}

void readUnixAddress(const StoreUri& uri, RedisOptions& options) {
  const auto named = [](const Endpoint& endpoint) { return !endpoint.host.empty() || endpoint.port; };
  if (std::any_of(uri.endpoints().begin(), uri.endpoints().end(), named)) {
    throw ConfigError(uri.scheme() + " takes no host: three slashes, then the path");
  }
  options.unixPath = uri.path();
  if (options.unixPath.size() < 2 || options.unixPath.size() > longestUnixPath) {
    throw ConfigError("the socket path " + quoted(options.unixPath) + " must have 2 to " +
                      std::to_string(longestUnixPath) + " bytes");
  }
  if (const auto database = uri.parameter("db")) readDatabase(*database, options.database);
}

}  // namespace

RedisOptions RedisOptions::fromUri(const StoreUri& uri) {
  const bool unixSocket = uri.scheme() == "redis+unix";
  const bool tls = uri.scheme() == "rediss";
  std::vector<std::string_view> known = {"fence", "minReplicas", "replicaTimeout"};
  if (unixSocket) known.push_back("db");
  allowOnly(uri, std::move(known), tls);
  RedisOptions options;
  unixSocket ? readUnixAddress(uri, options) : readTcpAddress(uri, options);
  readLogin(uri, uri.endpoints().empty() ? nullptr : &uri.endpoints()[0], options);
  options.tls = tls;
  readCommon(uri, tls, options);
  options.fence = uri.flag("fence", options.fence);
  options.minReplicas =
      static_cast<std::uint32_t>(uri.number("minReplicas", options.minReplicas, 0, mostReplicas));
  options.replicaTimeout =
      uri.duration("replicaTimeout", options.replicaTimeout, shortestTimeout, longestReplicaTimeout);
  return checked(std::move(options));
}

void RedisOptions::check() const {
  checkRange("minReplicas", minReplicas, 0, mostReplicas);
  checkDuration("replicaTimeout", replicaTimeout, shortestTimeout, longestReplicaTimeout);
  checkDuration("connectTimeout", connectTimeout, shortestTimeout, longestTimeout);
  checkDuration("ioTimeout", ioTimeout, shortestTimeout, longestTimeout);
}

std::string RedisOptions::display() const {
  if (!unixPath.empty()) return "redis+unix://" + unixPath;
  const bool bracketed = host.find(':') != std::string::npos;
  const std::string shownHost = bracketed ? "[" + host + "]" : host;
  return (tls ? "rediss://" : "redis://") + shownHost + ":" + std::to_string(port) + "/" +
         std::to_string(database);
}

}  // namespace lockkeeper::redis

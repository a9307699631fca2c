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
constexpr std::chrono::milliseconds shortestFenceKept{std::chrono::seconds{1}};
constexpr std::chrono::milliseconds longestFenceKept{std::chrono::days{365}};
constexpr std::uint32_t mostReplicas = 100;
constexpr std::size_t mostSentinels = 31;
constexpr std::chrono::milliseconds sentinelTimeout{1000};
constexpr std::uint16_t sentinelPort = 26379;
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

std::string addressOf(const std::string& host, std::uint16_t port) {
  const bool bracketed = host.find(':') != std::string::npos;
  return (bracketed ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

// "/name" or "/name/db", and the sentinels in the place of the host.
void readSentinels(const StoreUri& uri, RedisOptions& options) {
  SentinelOptions& sentinel = options.sentinel.emplace();
  for (const Endpoint& endpoint : uri.endpoints()) {
    sentinel.hosts.push_back(endpoint.host);
    sentinel.ports.push_back(endpoint.port.value_or(sentinelPort));
    const bool login = !endpoint.user.empty() || !endpoint.password.empty();
    if (login && &endpoint != &uri.endpoints().front()) {
      throw ConfigError(
          "a login stands before another sentinel than the first: one login, for the Redis servers, is "
          "allowed "
          "there; sentinelUser and sentinelPasswordFile are for the sentinels");
    }
  }
  const std::string path = uri.path().empty() ? std::string() : uri.path().substr(1);
  const std::size_t slash = std::min(path.find('/'), path.size());
  sentinel.master = path.substr(0, slash);
  if (slash + 1 < path.size()) readDatabase(std::string_view(path).substr(slash + 1), options.database);
  sentinel.user = uri.parameter("sentinelUser").value_or("");
  sentinel.password = uri.firstLineOf("sentinelPasswordFile");
  if (!sentinel.user.empty() && sentinel.password.empty()) {
    throw ConfigError("the user " + quoted(sentinel.user) + " of the sentinels has no password");
  }
  options.tls = uri.flag("tls", false);
  sentinel.tls = uri.flag("sentinelTls", options.tls);
  // A new master is waited for as long as an attempt at the former one takes.
  options.connectTimeout = options.ioTimeout = sentinelTimeout;
}

void checkSentinels(const SentinelOptions& sentinel) {
  const std::string& name = sentinel.master;
  // What Sentinel itself allows.
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  if (name.empty() || name.find_first_not_of(allowed) != std::string::npos) {
    throw std::invalid_argument("the master's name is " + quoted(name) +
                                ": letters, digits, '.', '-' and '_' are allowed, and needed");
  }
  const std::size_t count = sentinel.hosts.size();
  if (count == 0 || count > mostSentinels || count != sentinel.ports.size()) {
    throw std::invalid_argument(std::to_string(count) + " sentinels are named: 1 to " +
                                std::to_string(mostSentinels) + ", each with a port, are allowed");
  }
  std::vector<std::string> addresses;
  for (std::size_t index = 0; index < count; ++index) {
    const std::string address = addressOf(sentinel.hosts[index], sentinel.ports[index]);
    if (sentinel.hosts[index].empty() || sentinel.ports[index] == 0) {
      throw std::invalid_argument("the sentinel " + quoted(address) +
                                  " must have a host, and a port from 1 to 65535");
    }
    if (std::find(addresses.begin(), addresses.end(), address) != addresses.end()) {
      throw std::invalid_argument("the sentinel " + address + " is named twice: each has one vote");
    }
    addresses.push_back(address);
  }
}

// Each list whole: g++ 12 warns of a vector that grows here.
std::vector<std::string_view> ownParameters(std::string_view scheme) {
  if (scheme == "redis+unix") return {"fence", "fenceKept", "minReplicas", "replicaTimeout", "db"};
  if (scheme != "redis+sentinel") return {"fence", "fenceKept", "minReplicas", "replicaTimeout"};
  return {"fence", "fenceKept",  "minReplicas", "replicaTimeout", "sentinelUser", "sentinelPasswordFile",
          "tls",   "sentinelTls"};
}

}  // namespace

RedisOptions RedisOptions::fromUri(const StoreUri& uri) {
  const bool unixSocket = uri.scheme() == "redis+unix";
  const bool sentinels = uri.scheme() == "redis+sentinel";
  const bool tls = uri.scheme() == "rediss";
  allowOnly(uri, ownParameters(uri.scheme()), tls || sentinels);
  RedisOptions options;
  options.tls = tls;
  if (sentinels) {
    readSentinels(uri, options);
  } else {
    unixSocket ? readUnixAddress(uri, options) : readTcpAddress(uri, options);
  }
  readLogin(uri, uri.endpoints().empty() ? nullptr : &uri.endpoints()[0], options);
  readCommon(uri, options.tls || (sentinels && options.sentinel->tls), options);
  readLockSettings(uri, options);
  return checked(std::move(options));
}

void readLockSettings(const StoreUri& uri, RedisOptions& options) {
  options.fence = uri.flag("fence", options.fence);
  options.fenceKept = uri.duration("fenceKept", options.fenceKept, shortestFenceKept, longestFenceKept);
  options.minReplicas =
      static_cast<std::uint32_t>(uri.number("minReplicas", options.minReplicas, 0, mostReplicas));
  options.replicaTimeout =
      uri.duration("replicaTimeout", options.replicaTimeout, shortestTimeout, longestReplicaTimeout);
}

void RedisOptions::check() const {
  if (sentinel) checkSentinels(*sentinel);
  checkDuration("fenceKept", fenceKept, shortestFenceKept, longestFenceKept);
  checkRange("minReplicas", minReplicas, 0, mostReplicas);
  checkDuration("replicaTimeout", replicaTimeout, shortestTimeout, longestReplicaTimeout);
  checkDuration("connectTimeout", connectTimeout, shortestTimeout, longestTimeout);
  checkDuration("ioTimeout", ioTimeout, shortestTimeout, longestTimeout);
}

std::string RedisOptions::display() const {
  if (!unixPath.empty()) return "redis+unix://" + unixPath;
  const std::string path = "/" + std::to_string(database);
  if (!sentinel) return (tls ? "rediss://" : "redis://") + addressOf(host, port) + path;
  std::string hosts;
  for (std::size_t index = 0; index < std::min(sentinel->hosts.size(), sentinel->ports.size()); ++index) {
    hosts += (index > 0 ? "," : "") + addressOf(sentinel->hosts[index], sentinel->ports[index]);
  }
  return "redis+sentinel://" + hosts + "/" + sentinel->master + path;
}

}  // namespace lockkeeper::redis

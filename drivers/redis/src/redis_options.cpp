#include "lockkeeper/redis/redis_options.h"

#include <algorithm>
#include <charconv>
#include <fstream>

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/key.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds longestTimeout{std::chrono::hours{1}};
constexpr milliseconds longestReplicaTimeout{std::chrono::seconds{10}};
constexpr std::uint32_t mostDatabases = 1U << 20;
constexpr std::uint32_t mostReplicas = 100;
constexpr std::size_t longestUnixPath = 107;  // sockaddr_un::sun_path without its final 0
constexpr std::size_t longestClientName = 64;

void readDuration(const StoreUri& uri, std::string_view name, milliseconds most, milliseconds& out) {
  const auto text = uri.parameter(name);
  if (!text) return;
  out = parseDuration(name, *text);
  if (out < milliseconds{1} || out > most) {
    throw ConfigError(std::string(name) + " is " + quoted(*text) + ": 1ms to " + formatDuration(most) +
                      " are allowed");
  }
}

void readDatabase(std::string_view text, std::uint32_t& out) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault != std::errc{} || end != text.data() + text.size() || out >= mostDatabases) {
    throw ConfigError("the database is " + quoted(text) + ": 0 to " + std::to_string(mostDatabases - 1) +
                      " are allowed");
  }
}

void readAddress(const StoreUri& uri, RedisOptions& options) {
  const std::string& path = uri.path();
  if (uri.endpoints().size() != 1 || uri.endpoints()[0].host.empty()) {
    throw ConfigError(uri.scheme() + " takes exactly one host");
  }
  options.host = uri.endpoints()[0].host;
  options.port = uri.endpoints()[0].port.value_or(options.port);
  if (options.port == 0) throw ConfigError("the port is 0: 1 to 65535 are allowed");
  if (path.size() > 1) readDatabase(std::string_view(path).substr(1), options.database);
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

void readPassword(const StoreUri& uri, RedisOptions& options) {
  if (!uri.endpoints().empty()) {
    options.user = uri.endpoints()[0].user;
    options.password = uri.endpoints()[0].password;
  }
  if (const auto file = uri.parameter("passwordFile")) {
    if (!options.password.empty()) throw ConfigError("both a password and a passwordFile are given");
    std::ifstream in(*file);
    if (!std::getline(in, options.password))
      throw ConfigError("passwordFile " + quoted(*file) + " cannot be read");
    if (options.password.ends_with('\r')) options.password.pop_back();
  }
  if (!options.user.empty() && options.password.empty()) {
    throw ConfigError("the user " + quoted(options.user) + " has no password");
  }
}

void readTls(const StoreUri& uri, RedisOptions& options) {
  options.tls = uri.scheme() == "rediss";
  const auto file = uri.parameter("caFile");
  if (!file) return;
  options.caFile = *file;
  if (!std::ifstream(*file).good()) throw ConfigError("caFile " + quoted(*file) + " cannot be read");
}

void readClientName(const StoreUri& uri, RedisOptions& options) {
  options.clientName = uri.parameter("clientName").value_or(options.clientName);
  const std::string& name = options.clientName;
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (name.empty() || name.size() > longestClientName || !printable) {
    throw ConfigError("clientName is " + quoted(name) + ": 1 to " + std::to_string(longestClientName) +
                      " printable characters without spaces are allowed");
  }
}

}  // namespace

RedisOptions RedisOptions::fromUri(const StoreUri& uri) {
  const bool unixSocket = uri.scheme() == "redis+unix";
  if (unixSocket) {
    uri.allowOnly({"fence", "allowEviction", "minReplicas", "replicaTimeout", "connectTimeout", "ioTimeout",
                   "passwordFile", "clientName", "db"});
  } else if (uri.scheme() == "rediss") {
    uri.allowOnly({"fence", "allowEviction", "minReplicas", "replicaTimeout", "connectTimeout", "ioTimeout",
                   "passwordFile", "clientName", "caFile"});
  } else {
    uri.allowOnly({"fence", "allowEviction", "minReplicas", "replicaTimeout", "connectTimeout", "ioTimeout",
                   "passwordFile", "clientName"});
  }
  RedisOptions options;
  unixSocket ? readUnixAddress(uri, options) : readAddress(uri, options);
  readPassword(uri, options);
  readTls(uri, options);
  readClientName(uri, options);
  options.fence = uri.flag("fence", options.fence);
  options.allowEviction = uri.flag("allowEviction", options.allowEviction);
  options.minReplicas =
      static_cast<std::uint32_t>(uri.number("minReplicas", options.minReplicas, 0, mostReplicas));
  readDuration(uri, "replicaTimeout", longestReplicaTimeout, options.replicaTimeout);
  readDuration(uri, "connectTimeout", longestTimeout, options.connectTimeout);
  readDuration(uri, "ioTimeout", longestTimeout, options.ioTimeout);
  return options;
}

std::string RedisOptions::display() const {
  if (!unixPath.empty()) return "redis+unix://" + unixPath;
  const bool bracketed = host.find(':') != std::string::npos;
  const std::string shownHost = bracketed ? "[" + host + "]" : host;
  return (tls ? "rediss://" : "redis://") + shownHost + ":" + std::to_string(port) + "/" +
         std::to_string(database);
}

}  // namespace lockkeeper::redis

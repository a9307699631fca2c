#include "version/version_options.h"

#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::size_t mostConnections = 256;
constexpr std::chrono::seconds longestConnectTimeout{60};

// Whole seconds, because the client library counts no others.
std::chrono::seconds readTimeout(const std::string& text) {
  const auto length = parseDuration("connectTimeout", text);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(length);
  if (seconds != length || seconds < std::chrono::seconds{1} || seconds > longestConnectTimeout) {
    throw ConfigError("connectTimeout is " + quoted(text) + ": whole seconds from 1s to " +
                      formatDuration(longestConnectTimeout) + " are allowed");
  }
  return seconds;
}

}  // namespace

VersionOptions VersionOptions::fromUri(const StoreUri& uri) {
  for (const char* name : {"tls", "caFile"}) {
    if (!uri.parameter(name)) continue;
    throw ConfigError("the store's parameter " + quoted(name) + " is not supported by " + uri.scheme() +
                      ": mysql+getlock can encrypt, or use a tunnel");
  }
  uri.allowOnly({"table", "createTable", "connections", "connectTimeout", "passwordFile"});
  VersionOptions options{.server = sql::ServerAddress::fromUri(uri)};
  options.table = uri.parameter("table").value_or(options.table);
  sql::checkIdentifier("the table name", options.table);
  options.createTable = uri.flag("createTable", options.createTable);
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  if (const auto timeout = uri.parameter("connectTimeout")) options.connectTimeout = readTimeout(*timeout);
  return options;
}

}  // namespace lockkeeper::mysql

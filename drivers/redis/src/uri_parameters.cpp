#include "uri_parameters.h"

#include <algorithm>
#include <string>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"

namespace lockkeeper::redis {

namespace {

constexpr std::uint32_t mostDatabases = 1U << 20;
constexpr std::size_t longestClientName = 64;

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

void allowOnly(const StoreUri& uri, std::vector<std::string_view> own, bool tls) {
  own.insert(own.end(), {"allowEviction", "connectTimeout", "ioTimeout", "passwordFile", "clientName"});
  if (tls) own.insert(own.end(), {"caFile", "certFile", "keyFile"});
  uri.allowOnly(own);
}

void readDatabase(std::string_view text, std::uint32_t& out) {
  const auto number = wholeNumber<std::uint32_t>(text);
  if (!number || *number >= mostDatabases) {
    throw ConfigError("the database is " + quoted(text) + ": 0 to " + std::to_string(mostDatabases - 1) +
                      " are allowed");
  }
  out = *number;
}

void readHost(const Endpoint& endpoint, RedisOptions& options) {
  options.host = endpoint.host;
  options.port = endpoint.port.value_or(options.port);
  if (options.port == 0) throw ConfigError("the port is 0: 1 to 65535 are allowed");
}

void readAddress(const StoreUri& uri, const Endpoint& endpoint, RedisOptions& options) {
  readHost(endpoint, options);
  if (uri.path().size() > 1) readDatabase(std::string_view(uri.path()).substr(1), options.database);
}

void readLogin(const StoreUri& uri, const Endpoint* endpoint, RedisOptions& options) {
  const Endpoint login = endpoint == nullptr ? Endpoint{} : *endpoint;
  options.user = login.user;
  options.password = uri.passwordOf(login);
  if (!options.user.empty() && options.password.empty()) {
    // The user is not named: it may be a password without its ':'.
    throw ConfigError("the store's URI has a user without a password: write user:password@ or :password@");
  }
}

void readCommon(const StoreUri& uri, bool tls, RedisOptions& options) {
  const CertificateFiles files = uri.certificateFiles(tls);
  options.caFile = files.caFile;
  options.certFile = files.certFile;
  options.keyFile = files.keyFile;
  readClientName(uri, options);
  options.allowEviction = uri.flag("allowEviction", options.allowEviction);
  options.connectTimeout =
      uri.duration("connectTimeout", options.connectTimeout, shortestTimeout, longestTimeout);
  options.ioTimeout = uri.duration("ioTimeout", options.ioTimeout, shortestTimeout, longestTimeout);
}

}  // namespace lockkeeper::redis

#include "uri_parameters.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

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

void readFile(const StoreUri& uri, std::string_view name, std::string& out) {
  const auto file = uri.parameter(name);
  if (!file) return;
  out = *file;
  if (!std::ifstream(out).good())
    throw ConfigError(std::string(name) + " " + quoted(out) + " cannot be read");
}

}  // namespace

void allowOnly(const StoreUri& uri, std::vector<std::string_view> own, bool tls) {
  own.insert(own.end(), {"allowEviction", "connectTimeout", "ioTimeout", "passwordFile", "clientName"});
  if (tls) own.insert(own.end(), {"caFile", "certFile", "keyFile"});
  uri.allowOnly(own);
}

void readDuration(const StoreUri& uri, std::string_view name, milliseconds least, milliseconds most,
                  milliseconds& out) {
  const auto text = uri.parameter(name);
  if (!text) return;
  out = parseDuration(name, *text);
  if (out < least || out > most) {
    throw ConfigError(std::string(name) + " is " + quoted(*text) + ": " + formatDuration(least) + " to " +
                      formatDuration(most) + " are allowed");
  }
}

void readDatabase(std::string_view text, std::uint32_t& out) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault != std::errc{} || end != text.data() + text.size() || out >= mostDatabases) {
    throw ConfigError("the database is " + quoted(text) + ": 0 to " + std::to_string(mostDatabases - 1) +
                      " are allowed");
  }
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

void readPasswordFile(const StoreUri& uri, std::string_view name, std::string& out) {
  const auto file = uri.parameter(name);
  if (!file) return;
  std::ifstream in(*file);
  if (!std::getline(in, out)) throw ConfigError(std::string(name) + " " + quoted(*file) + " cannot be read");
  if (out.ends_with('\r')) out.pop_back();
}

void readLogin(const StoreUri& uri, const Endpoint* endpoint, RedisOptions& options) {
  const Endpoint login = endpoint == nullptr ? Endpoint{} : *endpoint;
  options.user = login.user;
  options.password = uri.passwordOf(login);
  if (!options.user.empty() && options.password.empty()) {
    throw ConfigError("the user " + quoted(options.user) + " has no password");
  }
}

void readCommon(const StoreUri& uri, RedisOptions& options) {
  readFile(uri, "caFile", options.caFile);
  readFile(uri, "certFile", options.certFile);
  readFile(uri, "keyFile", options.keyFile);
  if (options.certFile.empty() != options.keyFile.empty()) {
    throw ConfigError("certFile and keyFile belong together: only one of them is given");
  }
  readClientName(uri, options);
  options.allowEviction = uri.flag("allowEviction", options.allowEviction);
  readDuration(uri, "connectTimeout", shortestTimeout, longestTimeout, options.connectTimeout);
  readDuration(uri, "ioTimeout", shortestTimeout, longestTimeout, options.ioTimeout);
}

}  // namespace lockkeeper::redis

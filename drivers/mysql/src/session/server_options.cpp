#include "session/server_options.h"

#include <algorithm>
#include <cctype>
#include <fstream>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint16_t defaultPort = 3306;
constexpr seconds longestTimeout{60};
// The kernel's struct sockaddr_un has no room for more.
constexpr std::size_t longestSocketPath = 107;

// The client library takes these as C strings: it would cut them short in silence.
void refuseNul(std::string_view what, std::string_view value) {
  if (value.find('\0') == std::string_view::npos) return;
  throw ConfigError("the database's " + std::string(what) + " must not contain NUL");
}

milliseconds timeout(const StoreUri& uri, const char* name, milliseconds otherwise, milliseconds least) {
  const auto text = uri.parameter(name);
  if (!text) return otherwise;
  const milliseconds length = parseDuration(name, *text);
  if (length >= least && length <= longestTimeout && length % least == milliseconds{0}) return length;
  throw ConfigError(std::string(name) + " is " + quoted(*text) + ": " +
                    (least == seconds{1} ? "whole seconds" : "multiples of " + formatDuration(least)) +
                    " up to " + formatDuration(longestTimeout) + " are allowed");
}

ServerOptions readAddress(const StoreUri& uri) {
  if (uri.endpoints().size() != 1 || uri.endpoints().front().host.empty()) {
    throw ConfigError(uri.scheme() + ":// needs exactly one host: " + uri.scheme() +
                      "://user:password@host:port/database");
  }
  const Endpoint& server = uri.endpoints().front();
  ServerOptions options{.host = server.host,
                        .port = server.port.value_or(defaultPort),
                        .user = server.user,
                        .password = uri.passwordOf(server),
                        .database = uri.path().empty() ? "" : uri.path().substr(1),
                        .display = uri.display()};
  checkIdentifier("the database name", options.database);
  refuseNul("host", options.host);
  refuseNul("user", options.user);
  refuseNul("password", options.password);
  return options;
}

std::string readSocket(const StoreUri& uri) {
  const auto path = uri.parameter("socket");
  if (!path || (path->starts_with('/') && path->size() <= longestSocketPath)) return path.value_or("");
  throw ConfigError("the store's parameter 'socket' is " + quoted(*path) +
                    ": it must be an absolute path of at most " + std::to_string(longestSocketPath) +
                    " bytes");
}

std::string readFile(const StoreUri& uri, const char* name, bool tls) {
  const auto file = uri.parameter(name);
  if (!file) return "";
  if (!tls) throw ConfigError(std::string(name) + " is given without tls=on");
  if (!std::ifstream(*file).good()) {
    throw ConfigError(std::string(name) + " " + quoted(*file) + " cannot be read");
  }
  return *file;
}

void readTls(const StoreUri& uri, ServerOptions& options) {
  options.tls = uri.flag("tls", options.tls);
  if (options.tls && !options.socket.empty()) {
    throw ConfigError("both tls and socket are given: tls is for TCP");
  }
  if (uri.parameter("verify") && !options.tls) throw ConfigError("verify is given without tls=on");
  options.verify = uri.flag("verify", options.verify);
  options.caFile = readFile(uri, "caFile", options.tls);
  options.certFile = readFile(uri, "certFile", options.tls);
  options.keyFile = readFile(uri, "keyFile", options.tls);
  if (options.certFile.empty() != options.keyFile.empty()) {
    throw ConfigError("certFile and keyFile belong together: only one of them is given");
  }
}

}  // namespace

void checkIdentifier(std::string_view what, std::string_view name) {
  const bool allowed = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  if (!allowed) {
    throw ConfigError(std::string(what) + " is " + quoted(name) + ": 1 to 64 of [A-Za-z0-9_] are allowed");
  }
}

ServerOptions ServerOptions::fromUri(const StoreUri& uri) {
  ServerOptions options = readAddress(uri);
  options.createTable = uri.flag("createTable", options.createTable);
  // Whole seconds, because the client library counts no others.
  options.connectTimeout =
      std::chrono::duration_cast<seconds>(timeout(uri, "connectTimeout", options.connectTimeout, seconds{1}));
  options.ioTimeout = timeout(uri, "ioTimeout", options.ioTimeout, milliseconds{1});
  options.socket = readSocket(uri);
  readTls(uri, options);
  return options;
}

}  // namespace lockkeeper::mysql

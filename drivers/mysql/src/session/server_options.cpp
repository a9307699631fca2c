#include "session/server_options.h"

#include <algorithm>

#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/as_configured.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint16_t defaultPort = 3306;
constexpr seconds longestTimeout{60};
// The kernel's struct sockaddr_un has no room for more.
constexpr std::size_t longestSocketPath = 107;
// A group has nine members at most, and each search asks all.
constexpr std::size_t mostHosts = 9;

// The client library takes these as C strings: it would cut them short in silence.
void refuseNul(std::string_view what, std::string_view value) {
  if (value.find('\0') == std::string_view::npos) return;
  throw ConfigError("the database's " + std::string(what) + " must not contain NUL");
}

seconds readConnectTimeout(const StoreUri& uri, seconds otherwise) {
  const milliseconds length = uri.duration("connectTimeout", otherwise, seconds{1}, longestTimeout);
  if (length % seconds{1} == milliseconds{0}) return std::chrono::duration_cast<seconds>(length);
  throw ConfigError("the store's parameter 'connectTimeout' is " + formatDuration(length) +
                    ": it must be whole seconds, because the client library counts no others");
}

std::vector<ServerAddress> readHosts(const StoreUri& uri) {
  const std::vector<Endpoint>& endpoints = uri.endpoints();
  if (endpoints.empty() || endpoints.size() > mostHosts) {
    throw ConfigError(uri.scheme() + ":// names " + std::to_string(endpoints.size()) +
                      " hosts: it must be 1 to " + std::to_string(mostHosts) + ", as " + uri.scheme() +
                      "://user:password@host:port,host2:port/database");
  }
  std::vector<ServerAddress> hosts;
  for (const Endpoint& each : endpoints) {
    refuseNul("host", each.host);
    if (&each != &endpoints.front() && !(each.user.empty() && each.password.empty())) {
      throw ConfigError(
          "host " + std::to_string(&each - &endpoints.front() + 1) +
          " of the store's URI has a log-in of its own: the one before the first host is for all of "
          "them, and a ',' in it is written %2C");
    }
    const bool ipv6 = each.host.find(':') != std::string::npos;
    const std::uint16_t port = each.port.value_or(defaultPort);
    const std::string address = (ipv6 ? "[" + each.host + "]" : each.host) + ":" + std::to_string(port);
    const auto same = [&](const ServerAddress& other) {
      return other.host == each.host && other.port == port;
    };
    if (std::ranges::any_of(hosts, same)) throw ConfigError("the store names the host " + address + " twice");
    hosts.push_back({each.host, port, uri.scheme() + "://" + address + uri.path()});
  }
  if (hosts.size() == 1) hosts.front().display = uri.display();
  return hosts;
}

ServerOptions readAddress(const StoreUri& uri) {
  std::vector<ServerAddress> hosts = readHosts(uri);
  const Endpoint& login = uri.endpoints().front();
  ServerOptions options{.hosts = std::move(hosts),
                        .user = login.user,
                        .password = uri.passwordOf(login),
                        .database = uri.path().empty() ? "" : uri.path().substr(1),
                        .display = uri.display()};
  asConfigured("", [&] { checkName("the database name", options.database, ""); });
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

void readTls(const StoreUri& uri, ServerOptions& options) {
  options.tls = uri.flag("tls", options.tls);
  if (options.tls && !options.socket.empty()) {
    throw ConfigError("both tls and socket are given: tls is for TCP");
  }
  if (uri.parameter("verify") && !options.tls) throw ConfigError("verify is given without tls=on");
  options.verify = uri.flag("verify", options.verify);
  options.files = uri.certificateFiles(options.tls);
}

}  // namespace

void allowOnly(const StoreUri& uri, std::vector<std::string_view> own) {
  own.insert(own.end(), {"caFile", "certFile", "keyFile", "passwordFile", "socket", "tls", "verify"});
  uri.allowOnly(own);
}

ServerOptions ServerOptions::fromUri(const StoreUri& uri) {
  ServerOptions options = readAddress(uri);
  options.createTable = uri.flag("createTable", options.createTable);
  options.connectTimeout = readConnectTimeout(uri, options.connectTimeout);
  options.ioTimeout = uri.duration("ioTimeout", options.ioTimeout, milliseconds{1}, longestTimeout);
  options.socket = readSocket(uri);
  if (options.hosts.size() > 1 && !options.socket.empty()) {
    throw ConfigError("both socket and several hosts are given: a socket leads to one server");
  }
  readTls(uri, options);
  return options;
}

}  // namespace lockkeeper::mysql

#include "lockkeeper/driver/server_login.h"

#include <algorithm>
#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/checked_name.h"

namespace lockkeeper {
namespace {

constexpr std::size_t mostHosts = 9;  // A search asks all of them at once.

void refuseNul(std::string_view what, std::string_view value) {
  if (value.find('\0') == std::string_view::npos) return;
  throw ConfigError("the database's " + std::string(what) + " must not contain NUL");
}

std::vector<ServerAddress> readHosts(const StoreUri& uri, std::uint16_t defaultPort) {
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
      throw ConfigError("host " + std::to_string(&each - &endpoints.front() + 1) +
                        " of the store's URI has a log-in of its own: the one before the first host is for "
                        "all of them, and a ',' in it is written %2C");
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

std::string readSocket(const StoreUri& uri, const ServerLogin& login, std::size_t longest) {
  const auto path = uri.parameter("socket");
  if (!path) return "";
  if (!path->starts_with('/') || path->size() > longest) {
    throw ConfigError("the store's parameter 'socket' is " + quoted(*path) +
                      ": it must be an absolute path of at most " + std::to_string(longest) + " bytes");
  }
  if (login.hosts.size() > 1)
    throw ConfigError("both socket and several hosts are given: a socket leads to one server");
  if (login.tls) throw ConfigError("both tls and socket are given: tls is for TCP");
  return *path;
}

}  // namespace

ServerLogin ServerLogin::read(const StoreUri& uri, const ServerKind& kind) {
  ServerLogin login{.hosts = readHosts(uri, kind.defaultPort),
                    .user = uri.endpoints().front().user,
                    .password = uri.passwordOf(uri.endpoints().front()),
                    .database = uri.path().empty() ? "" : uri.path().substr(1),
                    .display = uri.display()};
  (void)checkedName("the database name", login.database, kind.longestDatabase);
  refuseNul("user", login.user);
  refuseNul("password", login.password);
  login.tls = uri.flag("tls", login.tls);
  login.socket = readSocket(uri, login, kind.longestSocket);
  if (uri.parameter("verify") && !login.tls) throw ConfigError("verify is given without tls=on");
  login.verify = uri.flag("verify", login.verify);
  login.files = uri.certificateFiles(login.tls);
  return login;
}

}  // namespace lockkeeper

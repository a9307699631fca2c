#include "session/server_options.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint16_t defaultPort = 5432;
constexpr seconds longestTimeout{60};
constexpr std::size_t mostHosts = 9;  // A search asks all of them at once.
constexpr std::size_t mostConnections = 256;
constexpr std::size_t longestSocketFolder = 80;  // The kernel's struct sockaddr_un has no room for more.

// The client library takes these as C strings: it would cut them short in silence.
void refuseNul(std::string_view what, std::string_view value) {
  if (value.find('\0') == std::string_view::npos) return;
  throw ConfigError("the database's " + std::string(what) + " must not contain NUL");
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
      throw ConfigError("host " + std::to_string(&each - &endpoints.front() + 1) +
                        " of the store's URI has a log-in of its own: the one before the first host is for "
                        "all of them, and a ',' in it is written %2C");
    }
    const bool ipv6 = each.host.find(':') != std::string::npos;
    const std::string port = std::to_string(each.port.value_or(defaultPort));
    const std::string address = (ipv6 ? "[" + each.host + "]" : each.host) + ":" + port;
    const auto same = [&](const ServerAddress& other) {
      return other.host == each.host && other.port == port;
    };
    if (std::ranges::any_of(hosts, same)) throw ConfigError("the store names the host " + address + " twice");
    hosts.push_back({each.host, port, uri.scheme() + "://" + address + uri.path()});
  }
  if (hosts.size() == 1) hosts.front().display = uri.display();
  return hosts;
}

std::string checkedName(std::string_view what, std::string name, std::size_t longest) {
  try {
    checkName(what, name, "");
  } catch (const std::invalid_argument& wrong) {
    throw ConfigError(wrong.what());
  }
  if (name.size() <= longest) return name;
  throw ConfigError(std::string(what) + " is " + quoted(name) + ": at most " + std::to_string(longest) +
                    " characters are allowed");
}

std::string readSocket(const StoreUri& uri) {
  const auto folder = uri.parameter("socket");
  if (!folder || (folder->starts_with('/') && folder->size() <= longestSocketFolder))
    return folder.value_or("");
  throw ConfigError("the store's parameter 'socket' is " + quoted(*folder) +
                    ": it must be the absolute path of a folder, such as /var/run/postgresql, of at most " +
                    std::to_string(longestSocketFolder) + " bytes");
}

void readTls(const StoreUri& uri, ServerOptions& options) {
  options.tls = uri.flag("tls", options.tls);
  if (options.tls && !options.socket.empty())
    throw ConfigError("both tls and socket are given: tls is for TCP");
  if (uri.parameter("verify") && !options.tls) throw ConfigError("verify is given without tls=on");
  options.verify = uri.flag("verify", options.verify);
  options.files = uri.certificateFiles(options.tls);
}

}  // namespace

std::string identifier(const StoreUri& uri, std::string_view name, std::string otherwise,
                       std::size_t longest) {
  return checkedName("the " + std::string(name) + " name", uri.parameter(name).value_or(std::move(otherwise)),
                     longest);
}

ServerOptions ServerOptions::fromUri(const StoreUri& uri, std::vector<std::string_view> own) {
  own.insert(own.end(), {"caFile", "certFile", "connections", "connectTimeout", "createTable", "ioTimeout",
                         "keyFile", "passwordFile", "schema", "socket", "tls", "verify"});
  std::ranges::sort(own);
  uri.allowOnly(own);
  std::vector<ServerAddress> hosts = readHosts(uri);
  const Endpoint& login = uri.endpoints().front();
  ServerOptions options{.hosts = std::move(hosts),
                        .user = login.user,
                        .password = uri.passwordOf(login),
                        .database = uri.path().empty() ? "" : uri.path().substr(1),
                        .display = uri.display()};
  checkedName("the database name", options.database, 63);
  refuseNul("user", options.user);
  refuseNul("password", options.password);
  if (options.user.empty())
    throw ConfigError("the store's URI names no user: it must be one, as " + uri.scheme() +
                      "://user:password@host:port/database");
  options.schema = identifier(uri, "schema", options.schema);
  options.createTable = uri.flag("createTable", options.createTable);
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  options.connectTimeout =
      uri.duration("connectTimeout", options.connectTimeout, milliseconds{1}, longestTimeout);
  options.ioTimeout = uri.duration("ioTimeout", options.ioTimeout, milliseconds{1}, longestTimeout);
  options.socket = readSocket(uri);
  if (options.hosts.size() > 1 && !options.socket.empty())
    throw ConfigError("both socket and several hosts are given: a socket leads to one server");
  readTls(uri, options);
  return options;
}

}  // namespace lockkeeper::postgres

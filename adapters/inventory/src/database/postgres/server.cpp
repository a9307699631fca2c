#include "database/postgres/server.h"

#include <stdexcept>
#include <string_view>

#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::size_t longestIdentifier = 63;    // PostgreSQL would cut longer ones.
constexpr std::size_t longestSocketFolder = 80;  // The kernel's struct sockaddr_un has no room for more.

// The client library takes these as C strings: it would cut them short in silence.
void refuseNul(std::string_view what, std::string_view value) {
  if (value.find('\0') == std::string_view::npos) return;
  throw ConfigError("the database's " + std::string(what) + " must not contain NUL");
}

std::string identifier(std::string_view what, std::string name) {
  try {
    checkName(what, name, "");
  } catch (const std::invalid_argument& wrong) {
    throw ConfigError(wrong.what());
  }
  if (name.size() <= longestIdentifier) return name;
  throw ConfigError(std::string(what) + " is " + quoted(name) + ": at most " +
                    std::to_string(longestIdentifier) + " characters are allowed");
}

std::string socketFolder(const StoreUri& uri) {
  const std::string folder = uri.parameter("socket").value_or("");
  if (folder.empty() || (folder.starts_with('/') && folder.size() <= longestSocketFolder)) return folder;
  throw ConfigError("the parameter 'socket' is " + quoted(folder) +
                    ": it must be the absolute path of a folder, such as /var/run/postgresql, of at most " +
                    std::to_string(longestSocketFolder) + " bytes");
}

const Endpoint& onlyHost(const StoreUri& uri) {
  const std::size_t hosts = uri.endpoints().size();
  if (hosts == 1) return uri.endpoints().front();
  throw ConfigError("postgres:// names " + std::to_string(hosts) +
                    " hosts: stock needs one, as postgres://user:password@host:port/database; a name or a "
                    "pooler that follows the primary is one");
}

void readTls(const StoreUri& uri, PostgresServer& server) {
  server.tls = uri.flag("tls", server.tls);
  if (server.tls && !server.socket.empty())
    throw ConfigError("both tls and socket are given: tls is for TCP");
  if (uri.parameter("verify") && !server.tls) throw ConfigError("verify is given without tls=on");
  server.verify = uri.flag("verify", server.verify);
  server.files = uri.certificateFiles(server.tls);
}

}  // namespace

PostgresServer PostgresServer::fromUri(const StoreUri& uri) {
  constexpr std::uint16_t defaultPort = 5432;
  uri.allowOnly({"caFile", "certFile", "keyFile", "passwordFile", "schema", "socket", "tls", "verify"});
  const Endpoint& host = onlyHost(uri);
  PostgresServer server{
      .host = host.host,
      .port = std::to_string(host.port.value_or(defaultPort)),
      .user = host.user,
      .password = uri.passwordOf(host),
      .database = identifier("the database name", uri.path().empty() ? "" : uri.path().substr(1)),
      .display = uri.display()};
  refuseNul("host", server.host);
  refuseNul("user", server.user);
  refuseNul("password", server.password);
  if (server.user.empty())
    throw ConfigError(
        "the database URI names no user: it must be one, as "
        "postgres://user:password@host:port/database");
  server.schema = identifier("the schema name", uri.parameter("schema").value_or(server.schema));
  server.socket = socketFolder(uri);
  readTls(uri, server);
  return server;
}

}  // namespace lockkeeper::inventory

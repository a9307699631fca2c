#include "session/server_options.h"

#include <algorithm>

#include "lockkeeper/error.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds longestTimeout{60};
constexpr std::size_t mostConnections = 256;
// `socket` is a folder: the name of the server's file in it takes the rest of the kernel's 107 bytes.
constexpr ServerKind postgresServer{.defaultPort = 5432, .longestSocket = 80, .longestDatabase = 63};

}  // namespace

ServerOptions ServerOptions::fromUri(const StoreUri& uri, std::vector<std::string_view> own) {
  own.insert(own.end(), {"connections", "connectTimeout", "createTable", "ioTimeout", "schema"});
  own.insert(own.end(), parameters.begin(), parameters.end());
  std::ranges::sort(own);
  uri.allowOnly(own);
  ServerOptions options{ServerLogin::read(uri, postgresServer)};
  if (options.user.empty())
    throw ConfigError("the store's URI names no user: it must be one, as " + uri.scheme() +
                      "://user:password@host:port/database");
  options.schema = identifier(uri, "schema", options.schema);
  options.createTable = uri.flag("createTable", options.createTable);
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  options.connectTimeout =
      uri.duration("connectTimeout", options.connectTimeout, milliseconds{1}, longestTimeout);
  options.ioTimeout = uri.duration("ioTimeout", options.ioTimeout, milliseconds{1}, longestTimeout);
  return options;
}

}  // namespace lockkeeper::postgres

#include "session/server_options.h"

#include <algorithm>

#include "lockkeeper/libpq/log_in.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds longestTimeout{60};
constexpr std::size_t mostConnections = 256;
constexpr std::size_t longestName = 63;  // PostgreSQL would cut longer ones.

}  // namespace

ServerOptions ServerOptions::fromUri(const StoreUri& uri, std::vector<std::string_view> own) {
  own.insert(own.end(), {"connections", "connectTimeout", "createTable", "ioTimeout", "schema"});
  own.insert(own.end(), parameters.begin(), parameters.end());
  std::ranges::sort(own);
  uri.allowOnly(own);
  ServerOptions options{libpq::readLogin(uri)};
  options.schema = uri.name("schema", options.schema, longestName);
  options.createTable = uri.flag("createTable", options.createTable);
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  options.connectTimeout =
      uri.duration("connectTimeout", options.connectTimeout, milliseconds{1}, longestTimeout);
  options.ioTimeout = uri.duration("ioTimeout", options.ioTimeout, milliseconds{1}, longestTimeout);
  return options;
}

}  // namespace lockkeeper::postgres

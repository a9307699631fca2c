#include "database/postgres/server.h"

#include <string_view>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/checked_name.h"
#include "lockkeeper/libpq/log_in.h"
#include "lockkeeper/libpq/settings.h"

namespace lockkeeper::inventory {

PostgresServer PostgresServer::fromUri(const StoreUri& uri) {
  constexpr std::size_t longestSchema = 63;  // PostgreSQL would cut longer ones.
  std::vector<std::string_view> known(parameters.begin(), parameters.end());
  known.emplace_back("schema");
  uri.allowOnly(known);
  if (const std::size_t hosts = uri.endpoints().size(); hosts != 1)
    throw ConfigError("postgres:// names " + std::to_string(hosts) +
                      " hosts: stock needs one, as postgres://user:password@host:port/database; a name or a "
                      "pooler that follows the primary is one");
  PostgresServer server{libpq::readLogin(uri)};
  server.schema =
      checkedName("the schema name", uri.parameter("schema").value_or(server.schema), longestSchema);
  return server;
}

// The client's own deadline is twice operationTimeout, and comes first unless the client stands still.
std::string PostgresServer::pins(std::chrono::seconds operationTimeout, bool isLocal) const {
  const auto seconds = [](std::chrono::seconds length) { return std::to_string(length.count()) + "s"; };
  return libpq::pinning({{"search_path", "\"" + schema + "\""},
                         {"bytea_output", "hex"},
                         {"lock_timeout", seconds(operationTimeout)},
                         {"statement_timeout", seconds(2 * operationTimeout + std::chrono::seconds{1})},
                         {"idle_in_transaction_session_timeout", seconds(operationTimeout)},
                         {"transaction_timeout", "0"}},
                        isLocal);
}

}  // namespace lockkeeper::inventory

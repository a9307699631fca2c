#include "postgres_fixture.h"

#include "lockkeeper/postgres/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {

PostgresServer& postgresServer() {
  static PostgresServer server;
  static const bool isReady = (server.makeLocks(), true);
  static_cast<void>(isReady);
  return server;
}

std::shared_ptr<LockDriver> openPostgres(const std::string& uri, const std::string& query,
                                         const Environment& environment) {
  StoreRegistry registry;
  postgres::use(registry);
  return registry.open(uri + (query.empty() ? "" : "?" + query), environment);
}

}  // namespace lockkeeper::test

#include <functional>
#include <memory>
#include <string>

#include "database_server.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "stores.h"

namespace lockkeeper::testing {
namespace {

using test::Brand;
using test::DatabaseServer;
using Server = std::shared_ptr<std::unique_ptr<DatabaseServer>>;

/// As a user of the database who may do what the drivers say that they need, and nothing else.
std::function<std::shared_ptr<LockDriver>()> opener(Server server, Brand brand, std::string scheme) {
  return [server = std::move(server), brand, scheme = std::move(scheme)] {
    if (!*server) {
      *server = std::make_unique<DatabaseServer>(
          brand, std::vector<std::string>{"--innodb-flush-log-at-trx-commit=2"});
      (*server)->execute("CREATE DATABASE locks");
      (*server)->execute("CREATE USER 'keeper'@'127.0.0.1' IDENTIFIED BY 'let-me-in'");
      (*server)->execute("GRANT SELECT, INSERT, UPDATE, CREATE ON locks.* TO 'keeper'@'127.0.0.1'");
    }
    StoreRegistry registry;
    mysql::use(registry);
    return registry.open(scheme + "://keeper:let-me-in@127.0.0.1:" + std::to_string((*server)->port()) +
                         "/locks?createTable=true");
  };
}

DriverFactory version(const char* name, Brand brand) {
  return {.name = name,
          .open = opener(std::make_shared<Server::element_type>(), brand, "mysql+version"),
          .fence = FencePromise::whileStoreKeepsWrites,
          .browsable = true,
          .breakable = true};
}

DriverFactory getLock(const char* name, Brand brand) {
  const auto server = std::make_shared<Server::element_type>();
  return {.name = name,
          .open = opener(server, brand, "mysql+getlock"),
          .fence = FencePromise::whileStoreKeepsWrites,
          .waitable = true,
          .reportsLosses = true,
          .shortTtl = std::chrono::seconds{1},
          .queued = [server] { return (*server)->waitingFor("%").size(); }};
}

}  // namespace

std::vector<DriverFactory> mysqlStores() {
  return {version("VersionOnMariadb", Brand::mariadb), version("VersionOnMysql", Brand::mysql),
          getLock("GetLockOnMariadb", Brand::mariadb), getLock("GetLockOnMysql", Brand::mysql)};
}

}  // namespace lockkeeper::testing

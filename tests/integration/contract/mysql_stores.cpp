#include <functional>
#include <memory>
#include <string>

#include "database_server.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "stores.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;
namespace {

/// The server that takes the writes and, where several hosts are tried, one before it in the URI that does
/// not.
struct Servers {
  std::unique_ptr<DatabaseServer> readOnly, writable;
};

/// For a user of the database who may do what the drivers say that they need, and nothing else.
std::unique_ptr<DatabaseServer> start(Brand brand) {
  auto server =
      std::make_unique<DatabaseServer>(brand, std::vector<std::string>{"--innodb-flush-log-at-trx-commit=2"});
  server->execute("CREATE DATABASE locks");
  server->execute("CREATE USER 'keeper'@'127.0.0.1' IDENTIFIED BY 'let-me-in'");
  server->execute("GRANT SELECT, INSERT, UPDATE, CREATE ON locks.* TO 'keeper'@'127.0.0.1'");
  server->execute("GRANT DELETE, CREATE ON locks.lockkeeper_locks_shares TO 'keeper'@'127.0.0.1'");
  return server;
}

std::string address(const DatabaseServer& server) { return "127.0.0.1:" + std::to_string(server.port()); }

/// MariaDB is one of two hosts, MySQL the only one.
std::function<std::shared_ptr<LockDriver>()> opener(std::shared_ptr<Servers> servers, Brand brand,
                                                    std::string scheme, std::string options = "") {
  return [servers = std::move(servers), brand, scheme = std::move(scheme), options = std::move(options)] {
    if (!servers->writable) {
      servers->writable = start(brand);
      if (brand == Brand::mariadb) {
        servers->readOnly = start(brand);
        servers->readOnly->execute("SET GLOBAL read_only = 1");
      }
    }
    StoreRegistry registry;
    mysql::use(registry);
    return registry.open(
        scheme + "://keeper:let-me-in@" + (servers->readOnly ? address(*servers->readOnly) + "," : "") +
        address(*servers->writable) + "/locks?createTable=true&connectTimeout=10s&ioTimeout=10s" + options);
  };
}

/// Those who have left a mark in a row, and those behind the first one of its queue.
std::size_t waitingForRows(const DatabaseServer& server) {
  const std::string marked = server.ask(
      "SELECT COALESCE(SUM((owner LIKE '%@@%') + (IS_USED_LOCK(CONCAT('queue:lockkeeper:', LEFT(SHA2("
      "CONCAT('locks\\n`lockkeeper_locks`\\n', lock_key), 256), 32))) IS NOT NULL)), 0) "
      "FROM locks.lockkeeper_locks WHERE owner LIKE '%@_%' AND SUBSTRING_INDEX(owner, '@', -1) > "
      "TIMESTAMPDIFF(MICROSECOND, DATE'1970-01-01', UTC_TIMESTAMP(6))");
  return std::stoul(marked) + server.waitingFor("queue%").size();
}

DriverFactory version(const char* name, Brand brand) {
  const auto servers = std::make_shared<Servers>();
  return {.name = name,
          .open = opener(servers, brand, "mysql+version", "&connections=24"),  // so that as many can wait
          .fence = FencePromise::whileStoreKeepsWrites,
          .waitable = true,
          .browsable = true,
          .breakable = true,
          .permits = true,
          .batchable = true,
          .batchReleasing = true,
          .shortTtl = std::chrono::milliseconds{500},
          .queued = [servers] { return waitingForRows(*servers->writable); },
          .placeKeptFor = std::chrono::seconds{1}};
}

DriverFactory getLock(const char* name, Brand brand) {
  const auto servers = std::make_shared<Servers>();
  return {.name = name,
          .open = opener(servers, brand, "mysql+getlock"),
          .fence = FencePromise::whileStoreKeepsWrites,
          .waitable = true,
          .reportsLosses = true,
          .shortTtl = std::chrono::seconds{1},
          .queued = [servers] { return servers->writable->waitingFor("%").size(); }};
}

}  // namespace

std::vector<DriverFactory> mysqlStores() {
  return {version("VersionOnMariadb", Brand::mariadb), version("VersionOnMysql", Brand::mysql),
          getLock("GetLockOnMariadb", Brand::mariadb), getLock("GetLockOnMysql", Brand::mysql)};
}

}  // namespace lockkeeper::test

#include <chrono>
#include <memory>
#include <string>

#include "lockkeeper/base/hex.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/store_registry.h"
#include "postgres_server.h"
#include "stores.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;
namespace {

struct PostgresOfContract {
  PostgresServer& started() {
    if (!server) {
      server = std::make_unique<PostgresServer>();
      server->makeLocks();
    }
    return *server;
  }
  std::unique_ptr<PostgresServer> server;
};

std::string byteaOf(const std::string& key) { return "'\\x" + toHex(key) + "'"; }

}  // namespace

std::vector<DriverFactory> postgresStores() {
  const auto store = std::make_shared<PostgresOfContract>();
  return {{.name = "VersionOnPostgres",
           .open =
               [store] {
                 StoreRegistry registry;
                 postgres::use(registry);
                 return registry.open(store->started().uri("postgres+version") +
                                      "?connectTimeout=10s&ioTimeout=10s");
               },
           .fence = FencePromise::whileStoreKeepsWrites,
           .waitable = true,
           .browsable = true,
           .breakable = true,
           .reportsLosses = true,
           .permits = true,
           .batchable = true,
           .batchReleasing = true,
           .showsWaiters = true,
           .shortTtl = std::chrono::milliseconds{500},
           .queued =
               [store] {
                 return static_cast<std::size_t>(std::stoul(store->started().ask(
                     "SELECT count(*) FROM lockkeeper_locks_waiters WHERE expires_at > clock_timestamp()")));
               },
           .placeKeptFor = std::chrono::seconds{3},
           .addDeadWaiter =
               [store](const std::string& key) {
                 store->started().execute(
                     "INSERT INTO lockkeeper_locks_waiters SELECT lock_key, decode(md5('dead'), 'hex'), "
                     "nextval('lockkeeper_locks_places'), 'dead', NULL, NULL, clock_timestamp(), "
                     "clock_timestamp() + "
                     "interval '3 seconds' FROM lockkeeper_locks WHERE lock_key = " +
                     byteaOf(key) +
                     "; UPDATE lockkeeper_locks SET waited_until = clock_timestamp() + interval '3 seconds' "
                     "WHERE "
                     "lock_key = " +
                     byteaOf(key));
               },
           .endWakeUps =
               [store] {
                 store->started().execute(
                     "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'");
               },
           .longestPause = std::chrono::seconds{4}}};
}

}  // namespace lockkeeper::test

// Version rows on MariaDB, MySQL and PostgreSQL through the whole of core, beside the same statements of the
// bare client library, and beside plain conditional UPDATEs, on the same server in the same run.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bare_postgres.h"
#include "brand.h"
#include "contest.h"
#include "database_server.h"
#include "lockkeeper/base/random.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/store_registry.h"
#include "mysql/raw_rows.h"
#include "postgres_server.h"
#include "version/texts/lock_texts.h"

namespace lockkeeper {
namespace {

const std::string ours = "lock and unlock", same = "bare, same statements", less = "bare, plain UPDATEs";

void compare(bench::Contest contest, LockManager& locks, const bench::Way& plain, const bench::Way& full,
             const bench::Goal& goal) {
  for (const int threads : {1, 16}) {
    contest.measure(threads, {plain, full, bench::pairs(ours, locks)},
                    {goal, {.ours = same, .beside = less, .server = 1.15, .bare = {same}}});
  }
}

bench::RawRows sameStatements(const test::DatabaseServer& server, const std::string& database,
                              const std::string& key) {
  const mysql::LockTexts texts("lockkeeper_locks");
  const std::string token = Token::generate(*systemRandom()).hex();
  return {server.port(),
          database,
          {texts.as(mysql::LockTexts::Standing::newcomer).claim,
           {key, std::int64_t{0}, token, "bench", std::chrono::microseconds(std::chrono::seconds{30}).count(),
            std::int64_t{0}}},
          {texts.release, {key, token}}};
}

void onMysql(const test::Brand brand, int count, char** arguments) {
  // Without a flush at each commit, so that the disk does not drown what is compared.
  test::DatabaseServer server(brand, {"--innodb-flush-log-at-trx-commit=0"});
  const std::string database = server.newDatabase(), uri = server.uri(database);
  StoreRegistry registry;
  mysql::use(registry);
  LockManager locks(
      registry.open("mysql+version" + uri.substr(uri.find("://")) + "?createTable=true&connections=16"));
  (void)locks.tryLock("makes the table");
  const auto bare = [](std::string name, auto connect) {
    return bench::Way{std::move(name), [connect](int thread) {
                        return [rows = std::make_shared<bench::RawRows>(
                                    connect("bare:" + std::to_string(thread)))] { rows->pair(); };
                      }};
  };
  compare(bench::Contest(std::string("version, ") + bench::inWords(brand), bench::serverOf(brand), count,
                         arguments),
          locks,
          bare(less, [&](const std::string& key) { return bench::RawRows(server.port(), database, key); }),
          bare(same, [&](const std::string& key) { return sameStatements(server, database, key); }),
          {.ours = ours, .beside = same, .server = 1.15, .client = 1.15, .bare = {same}});
}

void onPostgres(int count, char** arguments) {
  // Its commits wait for no disk, but are written.
  test::PostgresServer server;
  server.makeLocks();
  server.execute(bench::bareRows);
  StoreRegistry registry;
  postgres::use(registry);
  LockManager locks(registry.open(server.uri("postgres+version") + "?connections=16"));
  compare(bench::Contest("version, PostgreSQL", "bin/postgres", count, arguments), locks,
          bench::plainUpdates(less, server.port()), bench::sameClaims(same, server.port()),
          {.ours = ours, .beside = same, .server = 1.25, .client = 1.25, .time = 1.25, .bare = {same}});
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  for (const auto brand : lockkeeper::test::allBrands) lockkeeper::onMysql(brand, count, arguments);
  lockkeeper::onPostgres(count, arguments);
  return 0;
}

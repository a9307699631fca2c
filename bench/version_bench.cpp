// Version rows through the whole of core, beside the same statements of the bare client library, and beside
// plain conditional UPDATEs, on the same server in the same run.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "brand.h"
#include "contest.h"
#include "database_server.h"
#include "lockkeeper/base/random.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "raw_rows.h"
#include "version/texts/lock_texts.h"

namespace lockkeeper {
namespace {

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

void compare(const test::Brand brand, int count, char** arguments) {
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
  const std::string ours = "lock and unlock", same = "bare, same statements", less = "bare, plain UPDATEs";
  const std::vector<bench::Way> ways{
      bare(less, [&](const std::string& key) { return bench::RawRows(server.port(), database, key); }),
      bare(same, [&](const std::string& key) { return sameStatements(server, database, key); }),
      bench::pairs(ours, locks)};
  bench::Contest contest(std::string("version, ") + bench::inWords(brand), bench::serverOf(brand), count,
                         arguments);
  for (const int threads : {1, 16}) {
    contest.measure(threads, ways,
                    {{.ours = ours, .beside = same, .server = 1.15, .client = 1.15, .bare = {same}},
                     {.ours = same, .beside = less, .server = 1.15, .bare = {same}}});
  }
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  for (const auto brand : lockkeeper::test::allBrands) lockkeeper::compare(brand, count, arguments);
  return 0;
}

// GET_LOCK through the whole of core, beside the same statements in a bare loop of the client library, and
// beside statements that ask for less, on the same server in the same run.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "brand.h"
#include "contest.h"
#include "database_server.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "mysql/raw_getlock.h"

namespace lockkeeper {
namespace {

LockManager open(const std::string& databaseUri, const std::string& parameters) {
  StoreRegistry registry;
  mysql::use(registry);
  return LockManager(
      registry.open("mysql+getlock" + databaseUri.substr(databaseUri.find("://")) + parameters));
}

void compare(const test::Brand brand, int count, char** arguments) {
  // Without a flush at each commit, so that the disk does not drown what is compared.
  test::DatabaseServer server(brand, {"--innodb-flush-log-at-trx-commit=0"});
  const std::string database = server.newDatabase();
  LockManager plain = open(server.uri(database), "?fence=off");
  LockManager fenced = open(server.uri(database), "?createTable=true");
  (void)fenced.tryLock("makes the table");
  const auto bare = [&](std::string name, void (bench::RawGetLock::*pair)()) {
    return bench::Way{std::move(name), [&server, &database, pair](int thread) {
                        return [raw = std::make_shared<bench::RawGetLock>(server.port(), database,
                                                                          "raw:" + std::to_string(thread)),
                                pair] { (raw.get()->*pair)(); };
                      }};
  };
  const std::string same = "bare, same statements", less = "bare, fewer questions", fence = "with a fence",
                    sameFenced = "bare, same statements, with a fence", lessFenced = "bare, with a fence";
  bench::Contest contest(std::string("getlock, ") + bench::inWords(brand), bench::serverOf(brand), count,
                         arguments);
  for (const int threads : {1, 16}) {
    contest.measure(
        threads,
        {bare(less, &bench::RawGetLock::pair), bare(same, &bench::RawGetLock::checkedPair),
         bench::pairs("no fence", plain), bare(lessFenced, &bench::RawGetLock::fencedPair),
         bare(sameFenced, &bench::RawGetLock::checkedFencedPair), bench::pairs(fence, fenced)},
        {{.ours = "no fence", .beside = same, .server = 1.15, .client = 1.15, .bare = {same}},
         {.ours = same, .beside = less, .server = 1.15, .bare = {same}},
         {.ours = fence, .beside = sameFenced, .server = 1.15, .client = 1.15, .bare = {sameFenced}},
         {.ours = sameFenced, .beside = lessFenced, .server = 1.15, .bare = {sameFenced}}});
  }
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  for (const auto brand : lockkeeper::test::allBrands) lockkeeper::compare(brand, count, arguments);
  return 0;
}

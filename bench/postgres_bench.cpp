// Version rows on PostgreSQL through the whole of core, beside the same statements by the bare client
// library, on the same server in the same run.

#include <memory>
#include <string>
#include <vector>

#include "contest.h"
#include "lock/lock_texts.h"
#include "lockkeeper/base/hex.h"
#include "lockkeeper/base/random.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/store_registry.h"
#include "postgres_server.h"
#include "raw_postgres.h"

int main(int count, char** arguments) {
  using namespace lockkeeper;
  test::PostgresServer server({"synchronous_commit=off"});
  server.makeLocks();
  StoreRegistry registry;
  postgres::use(registry);
  LockManager locks(registry.open(server.uri("postgres+version") + "?connections=16"));
  const postgres::LockTexts texts("public", "lockkeeper_locks");
  const std::string ours = "lock and unlock", same = "bare, same statements";
  const std::vector<bench::Way> ways{
      {same,
       [&](int thread) {
         const auto rows = std::make_shared<bench::RawPostgres>(
             "host=127.0.0.1 port=" + std::to_string(server.port()) +
                 " user=auditor dbname=locks sslmode=disable",
             bench::RawPostgres::Statement{texts.claim, {"bench", "30000", "1", "1", nullptr, nullptr}},
             bench::RawPostgres::Statement{texts.release, {}},
             "\\x" + toHex("bare:" + std::to_string(thread)), "\\x" + Token::generate(*systemRandom()).hex());
         return [rows] { rows->pair(); };
       }},
      bench::pairs(ours, locks)};
  bench::Contest contest("postgres", "", count, arguments);
  for (const int threads : {1, 16})
    contest.measure(threads, ways,
                    {{.ours = ours, .beside = same, .client = bench::shown, .time = 1.25, .bare = {same}}});
  return 0;
}

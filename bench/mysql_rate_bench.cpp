// Rate limits on MariaDB, beside a bare loop of the client library that sends the driver's own statement, on
// the same server in the same run.

#include <benchmark/benchmark.h>

#include <string>

#include "database_server.h"
#include "limit/rate_statements.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/store_registry.h"
#include "ratio_report.h"
#include "raw_session.h"

namespace lockkeeper {
namespace {

// Without a flush at each commit, so that the disk does not drown what is compared.
test::DatabaseServer& server() {
  static test::DatabaseServer started(test::Brand::mariadb, {"--innodb-flush-log-at-trx-commit=0"});
  return started;
}

const std::string& database() {
  static const std::string name = server().newDatabase();
  return name;
}

RateLimiter& limiter() {
  static RateLimiter made = [] {
    StoreRegistry registry;
    mysql::use(registry);
    const std::string uri = server().uri(database());
    return RateLimiter(registry.openRates("mysql+version" + uri.substr(uri.find("://")) +
                                          "?createTable=true&connections=16"));
  }();
  return made;
}

// Whose answer is always yes.
const RatePolicy generous("generous", {.rate = {1'000'000, std::chrono::seconds{1}}, .burst = 1'000'000'000});

std::string keyOf(const benchmark::State& state) { return "user:" + std::to_string(state.thread_index()); }

void bareStatement(benchmark::State& state) {
  (void)limiter().peek("user:0", generous);  // makes the table
  bench::RawSession session(server().port(), database());
  session.ask(mysql::pinScript(mysql::rates::sessionRules));
  const std::string key = "bare:" + keyOf(state);
  const std::string statement = mysql::rates::charge({.key = key, .law = &generous.law()});
  for (auto _ : state) {
    if (session.ask(statement) != "1") state.SkipWithError("the statement did not grant");
  }
  state.SetItemsProcessed(state.iterations());
}

void takeAll(benchmark::State& state, const std::string& key) {
  for (auto _ : state) {
    if (!limiter().take(key, generous)) state.SkipWithError("another decision than expected");
  }
  state.SetItemsProcessed(state.iterations());
}

void distinctKeys(benchmark::State& state) { takeAll(state, keyOf(state)); }

void oneHotKey(benchmark::State& state) { takeAll(state, "hot"); }

BENCHMARK(bareStatement)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK(distinctKeys)->Threads(1)->Threads(16)->UseRealTime();
BENCHMARK(oneHotKey)->Threads(16)->UseRealTime();

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  lockkeeper::server();  // on the thread that lives longest: the server dies with the one that started it
  lockkeeper::database();
  const std::string one = "/real_time/threads:1", sixteen = "/real_time/threads:16";
  lockkeeper::bench::RatioReport report({{"distinctKeys" + one, "bareStatement" + one, 1.25},
                                         {"distinctKeys" + sixteen, "bareStatement" + sixteen, 1.25},
                                         {"oneHotKey" + sixteen, "bareStatement" + sixteen, 1.25}});
  benchmark::RunSpecifiedBenchmarks(&report);
  return 0;
}

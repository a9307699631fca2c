// Decisions of rate limits: in memory; on one Redis beside the same algorithm as a bare script; on MariaDB,
// MySQL and PostgreSQL beside the driver's own statement sent by the bare client library; on the same servers
// in the same run.

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bare_postgres.h"
#include "brand.h"
#include "contest.h"
#include "database_server.h"
#include "limit/rate_statements.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "mysql/raw_session.h"
#include "postgres_server.h"
#include "raw_redis.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

// Whose answer is always yes, and always no.
const RatePolicy generous("generous", {.rate = {1'000'000, std::chrono::seconds{1}}, .burst = 1'000'000'000});
const RatePolicy strict("strict", {.rate = {1, std::chrono::days{1}}});

// The time at which the bucket is full again; ARGV: what a unit takes, and what the bucket has room for, in
// µs.
constexpr const char* bareScript = R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + ARGV[1]
if full - now > tonumber(ARGV[2]) then
  return 0
end
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
return 1
)lua";

constexpr const char* sameStatement = "bare, same statement";

bench::Way decisions(std::string name, RateLimiter& limiter, const RatePolicy& policy, bool ownKeys) {
  return {std::move(name), [&limiter, &policy, ownKeys](int thread) {
            const std::string key = ownKeys ? "user:" + std::to_string(thread) : "hot";
            (void)limiter.take(key, policy);
            return [&limiter, &policy, key] {
              if (limiter.take(key, policy).allowed != (&policy == &generous))
                throw std::runtime_error("another decision than expected");
            };
          }};
}

void inMemory(int count, char** arguments) {
  RateLimiter limiter(std::make_shared<MemoryDriver>());
  bench::Contest contest("limits, memory", "", count, arguments);
  contest.measure(
      1, {decisions("granted", limiter, generous, true), decisions("refused", limiter, strict, true)}, {});
}

// Costs at most so many times as much as what is bare.
void compare(bench::Contest contest, RateLimiter& limiter, const bench::Way& bare, double atMost,
             double clientAtMost) {
  const auto goal = [&](const char* way) {
    return bench::Goal{
        .ours = way, .beside = bare.name, .server = atMost, .client = clientAtMost, .bare = {bare.name}};
  };
  for (const int threads : {1, 16}) {
    contest.measure(threads,
                    {bare, decisions("own keys", limiter, generous, true),
                     decisions("one key for all", limiter, generous, false)},
                    {goal("own keys"), goal("one key for all")});
  }
}

void onRedis(int count, char** arguments) {
  const test::RedisServer server;
  StoreRegistry registry;
  redis::use(registry);
  RateLimiter limiter(registry.openRates(server.uri()));
  const bench::Way script{"a bare script", [&server](int thread) {
                            auto redis = std::make_shared<bench::RawRedis>(server.port());
                            return [redis, sha = redis->load(bareScript),
                                    key = "bare:" + std::to_string(thread)] {
                              if (redis->ask({"EVALSHA", sha, "1", key, "1", "1000000000"}) != 1)
                                throw std::runtime_error("the script did not grant");
                            };
                          }};
  compare(bench::Contest("limits, redis", "redis-server", count, arguments), limiter, script, 1.3,
          bench::shown);
}

void onMysql(const test::Brand brand, int count, char** arguments) {
  // Without a flush at each commit, so that the disk does not drown what is compared.
  test::DatabaseServer server(brand, {"--innodb-flush-log-at-trx-commit=0"});
  const std::string database = server.newDatabase(), uri = server.uri(database);
  StoreRegistry registry;
  mysql::use(registry);
  RateLimiter limiter(
      registry.openRates("mysql+version" + uri.substr(uri.find("://")) + "?createTable=true&connections=16"));
  (void)limiter.peek("user:0", generous);  // makes the table
  const bench::Way statement{sameStatement, [&](int thread) {
                               auto session = std::make_shared<bench::RawSession>(server.port(), database);
                               session->ask(mysql::pinScript(mysql::rates::sessionRules));
                               const std::string key = "bare:" + std::to_string(thread);
                               return [session,
                                       charge = mysql::rates::charge({.key = key, .law = &generous.law()})] {
                                 if (session->ask(charge) != "1")
                                   throw std::runtime_error("the statement did not grant");
                               };
                             }};
  compare(bench::Contest(std::string("limits, ") + bench::inWords(brand), bench::serverOf(brand), count,
                         arguments),
          limiter, statement, 1.15, 1.15);
}

void onPostgres(int count, char** arguments) {
  // Its commits wait for no disk, but are written.
  test::PostgresServer server;
  server.makeLocks();
  StoreRegistry registry;
  postgres::use(registry);
  RateLimiter limiter(registry.openRates(server.uri("postgres+version") + "?connections=16"));
  const bench::Way statement = bench::sameCharges(sameStatement, server.port(), generous.law());
  compare(bench::Contest("limits, PostgreSQL", "bin/postgres", count, arguments), limiter, statement, 1.15,
          1.15);
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  lockkeeper::inMemory(count, arguments);
  lockkeeper::onRedis(count, arguments);
  for (const auto brand : lockkeeper::test::allBrands) lockkeeper::onMysql(brand, count, arguments);
  lockkeeper::onPostgres(count, arguments);
  return 0;
}

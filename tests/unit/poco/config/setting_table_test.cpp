#include "config/setting_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "config/edit_distance.h"
#include "config/setting_list.h"
#include "configurations.h"
#include "http/route/route_table.h"
#include "lockkeeper/poco/idempotency.h"
#include "lockkeeper/poco/rate_limit_filter.h"
#include "lockkeeper/poco/request_locks.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::poco {
namespace {

TEST(SettingTable, DocumentsEachSettingAsTheLibraryReadsIt) {
  std::ifstream file(LOCKKEEPER_CONFIGURATION_PAGE);
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), settingsPage()) << "run: cmake --build build --target configuration_page";
}

TEST(SettingTable, ListsEachSettingOnceWithDefaultAndUnit) {
  std::ostringstream list;
  printSettings(list);
  std::set<std::string_view> names;
  for (const SettingRow& row : settingTable()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(list.str().find(std::string(row.name) + " = " + std::string(row.value) + " ["),
              std::string::npos);
    EXPECT_TRUE(row.meaning.ends_with('.')) << row.name;
  }
  EXPECT_EQ(list.str().substr(0, list.str().find('\n')), "lockkeeper.store = URI [required]");
  EXPECT_NE(list.str().find("\nlockkeeper.lock.ttl = duration [30s]\n"
                            "    How long the store keeps the lock of a holder that has gone silent"),
            std::string::npos)
      << list.str();
}

TEST(SettingTable, ItsDefaultsAreTheLibrarys) {
  const Settings settings = readSettings(*properties(""));
  const ManagerOptions manager;
  EXPECT_EQ(settings.manager.lock.ttl, LockOptions::defaultTtl);
  EXPECT_EQ(settings.manager.lock.waitFor, manager.lock.waitFor);
  EXPECT_EQ(settings.manager.lock.renew, Renew::automatic);
  EXPECT_EQ(settings.manager.lock.maxHold, manager.lock.maxHold);
  EXPECT_EQ(settings.manager.lock.safetyMargin, manager.lock.safetyMargin);
  EXPECT_EQ(settings.manager.operationTimeout, manager.operationTimeout);
  EXPECT_EQ(settings.manager.backoffInitial, manager.backoffInitial);
  EXPECT_EQ(settings.manager.backoffCap, manager.backoffCap);
  EXPECT_EQ(settings.limiter.operationTimeout, RateLimiterOptions{}.operationTimeout);
  const migration::MigrationOptions migration;
  EXPECT_EQ(settings.migration.options.rules, migration.rules);
  EXPECT_EQ(settings.migration.options.name, migration.name);
  EXPECT_EQ(settings.migration.options.heartbeat, migration.heartbeat);
  EXPECT_EQ(settings.migration.options.lease, migration.lease);
  EXPECT_EQ(settings.migration.options.maxTtl, migration.maxTtl);
  EXPECT_EQ(settings.migration.options.observation, migration.observation);
}

/// All defaults of rows that begin so, written out, `*` being "x".
std::string defaults(std::string_view beginning) {
  std::string text;
  for (const SettingRow& row : settingTable()) {
    if (!row.name.starts_with(beginning) || !row.hasFallback()) continue;
    std::string name(row.name);
    if (const auto star = name.find('*'); star != std::string::npos) name.replace(star, 1, "x");
    text += name + " = " + std::string(row.fallback) + "\n";
  }
  return text;
}

TEST(SettingTable, ItsDefaultsOfLimitsAreTheLibrarys) {
  const RatePolicyOptions options =
      readSettings(*properties(defaults("lockkeeper.limits") + "lockkeeper.limits.x.rate = 3/s\n"))
          .policies()
          .at("x")
          .options();
  const RatePolicyOptions plain;
  EXPECT_EQ(options.kind, plain.kind);
  EXPECT_EQ(options.outage, plain.outage);
  EXPECT_EQ(options.processes, plain.processes);
  EXPECT_EQ(options.prefetch, plain.prefetch);
  EXPECT_EQ(options.prefetchIdle, plain.prefetchIdle);
}

TEST(SettingTable, ItsDefaultsOfTasksAreTheLibrarys) {
  const TaskOptions options = readSettings(*properties(defaults("lockkeeper.tasks"))).tasks.at("x");
  const TaskOptions plain;
  EXPECT_EQ(options.atLeast, plain.atLeast);
  EXPECT_EQ(options.atMost, plain.atMost);
  EXPECT_EQ(options.ttl, plain.ttl);
}

TEST(SettingTable, ItsDefaultsOfTheFilterAreTheFilters) {
  const RouteTable written(*properties(defaults("lockkeeper.http")), {});
  const RouteTable plain(*properties(""), {});
  EXPECT_EQ(written.mostBodyBytes(), plain.mostBodyBytes());
  EXPECT_EQ(written.dryRun(), plain.dryRun());
}

TEST(SettingTable, ItsDefaultsOfLockedRequestsAreTheirs) {
  const std::string route = "lockkeeper.http.locks.x.match = PUT /x\nlockkeeper.http.locks.x.by = all\n";
  const LockedRoute written =
      readRequestLocks(*properties(route + defaults("lockkeeper.http.locks"))).routes.at(0);
  const LockedRoute plain = readRequestLocks(*properties(route)).routes.at(0);
  EXPECT_EQ(written.lock.ttl, plain.lock.ttl);
  EXPECT_EQ(written.lock.waitFor, plain.lock.waitFor);
}

TEST(SettingTable, ItsDefaultsOfIdempotencyAreItsOwn) {
  const std::string route = "lockkeeper.http.idempotency.routes.x.match = POST /x\n";
  const IdempotencyOptions written =
      readIdempotency(*properties(route + defaults("lockkeeper.http.idempotency")));
  const IdempotencyOptions plain = readIdempotency(*properties(route));
  EXPECT_EQ(written.methods, plain.methods);
  EXPECT_EQ(written.maxBody, plain.maxBody);
  EXPECT_EQ(written.maxAnswer, plain.maxAnswer);
  EXPECT_EQ(written.routes.at(0).client, plain.routes.at(0).client);
  EXPECT_EQ(written.routes.at(0).required, plain.routes.at(0).required);
  EXPECT_EQ(written.routes.at(0).keepFor, plain.routes.at(0).keepFor);
  EXPECT_EQ(written.routes.at(0).ttl, plain.routes.at(0).ttl);
}

TEST(SettingTable, KnowsWhatTheHttpWrappersRead) {
  const Configuration configuration = properties(
      "lockkeeper.limits.total.rate = 1/s\nlockkeeper.http.dryRun = on\nlockkeeper.http.maxBody = 100\n"
      "lockkeeper.http.trustedProxies = ::1\nlockkeeper.http.ipv6Prefix = 48\n"
      "lockkeeper.http.routes.all.match = * /*\nlockkeeper.http.routes.all.dryRun = off\n"
      "lockkeeper.http.routes.all.limits.total = all\n"
      "lockkeeper.http.locks.all.match = PUT /x\nlockkeeper.http.locks.all.by = all\n"
      "lockkeeper.http.locks.all.scope = x\nlockkeeper.http.locks.all.ttl = 1s\n"
      "lockkeeper.http.locks.all.waitFor = 1s\nlockkeeper.http.locks.all.maxHold = 1m\n"
      "lockkeeper.http.idempotency.methods = POST\nlockkeeper.http.idempotency.maxBody = 100\n"
      "lockkeeper.http.idempotency.maxAnswer = 2000\n"
      "lockkeeper.http.idempotency.routes.all.match = * /*\n"
      "lockkeeper.http.idempotency.routes.all.client = all\n"
      "lockkeeper.http.idempotency.routes.all.required = off\n"
      "lockkeeper.http.idempotency.routes.all.keepFor = 1h\n"
      "lockkeeper.http.idempotency.routes.all.ttl = 1s\n");
  EXPECT_NO_THROW(readSettings(*configuration));
  const auto limiter = std::make_shared<RateLimiter>(StoreRegistry().openRates("memory:"));
  EXPECT_NO_THROW(RateLimitFilter(limiter, *configuration));
  EXPECT_NO_THROW(readRequestLocks(*configuration));
  EXPECT_NO_THROW(readIdempotency(*configuration));
  for (const SettingRow& row : settingTable()) {
    if (row.read != nullptr) continue;
    std::string name(row.name);
    for (const std::string own : {"all", "total"}) {
      if (const auto star = name.find('*'); star != std::string::npos) name.replace(star, 1, own);
    }
    EXPECT_TRUE(configuration->has(name)) << name << " is not tried with what reads it";
  }
}

TEST(EditDistance, CountsChanges) {
  EXPECT_EQ(editDistance("", ""), 0U);
  EXPECT_EQ(editDistance("", "abc"), 3U);
  EXPECT_EQ(editDistance("abc", ""), 3U);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(editDistance("ttl", "tll"), 1U);
  EXPECT_EQ(editDistance("burst", "brust"), 2U);
  EXPECT_EQ(editDistance("waitFor", "waitfor"), 1U);
}

}  // namespace
}  // namespace lockkeeper::poco

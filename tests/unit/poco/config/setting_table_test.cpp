#include "config/setting_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "config/setting_list.h"
#include "configurations.h"
#include "lockkeeper/internal/edit_distance.h"
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

TEST(SettingTable, WhatIsNotSetIsAsTheLibraryMakesIt) {
  const Settings settings = readSettings(*properties(""));
  const ManagerOptions manager;
  EXPECT_EQ(settings.manager.lock.ttl, manager.lock.ttl);
  EXPECT_EQ(settings.manager.operationTimeout, manager.operationTimeout);
  EXPECT_EQ(settings.limiter.operationTimeout, RateLimiterOptions{}.operationTimeout);
  EXPECT_EQ(settings.migration.options.lease, migration::MigrationOptions{}.lease);
  EXPECT_EQ(settings.http.limits.maxBody, RateLimitOptions{}.maxBody);
}

/// A configuration in which each setting whose row begins so has its default, as the row tells it.
std::string defaults(std::string_view beginning) {
  std::string text;
  for (const SettingRow& row : settingTable()) {
    const std::string fallback = row.shownDefault();
    if (!row.name.starts_with(beginning) || !fallback.starts_with('`')) continue;
    std::string name(row.name);
    if (const auto star = name.find('*'); star != std::string::npos) name.replace(star, 1, "x");
    text += name + " = " + fallback.substr(1, fallback.size() - 2) + "\n";
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
}

TEST(SettingTable, EachDefaultCanBeWrittenAsItIsShown) {
  const Settings settings = readSettings(*properties(defaults("lockkeeper")));
  const TaskOptions plainTask;
  EXPECT_EQ(settings.tasks.at("x").atMost, plainTask.atMost);
  EXPECT_EQ(settings.tasks.at("x").ttl, plainTask.ttl);
  EXPECT_EQ(settings.http.locks.maxWaiting, std::nullopt);
  const IdempotencyOptions& written = settings.http.idempotency;
  EXPECT_EQ(written.maxAnswer, IdempotencyOptions{}.maxAnswer);
  EXPECT_EQ(written.routes.at(0).client, IdempotentRoute{}.client);
  EXPECT_EQ(written.routes.at(0).keepFor, IdempotentRoute{}.keepFor);
  EXPECT_EQ(settings.manager.lock.ttl, LockOptions::defaultTtl);
  EXPECT_EQ(settings.manager.lock.renew, Renew::automatic);
  EXPECT_EQ(settings.migration.options.rules, migration::MigrationOptions{}.rules);
}

/// A configuration with all settings of lockkeeper.http, each of them as `value(row)` says.
template <class Value>
std::string http(Value value) {
  std::string text;
  for (const SettingRow& row : settingTable()) {
    if (!row.name.starts_with("lockkeeper.http")) continue;
    std::string name(row.name);
    for (const std::string own : {"all", "total"}) {
      if (const auto star = name.find('*'); star != std::string::npos) name.replace(star, 1, own);
    }
    text += name + " = " + value(row) + "\n";
  }
  return text;
}

/// Makes all filters of a configuration.
void makeFilters(const std::string& text) {
  const Configuration configuration = properties(text);
  StoreRegistry stores;
  const auto limiter = std::make_shared<RateLimiter>(stores.openRates("memory:"));
  const auto manager = std::make_shared<LockManager>(stores.open("memory:"));
  RateLimitFilter(limiter, RateLimitOptions::fromConfiguration(*configuration));
  RequestLocks(manager, RequestLockOptions::fromConfiguration(*configuration));
  Idempotency(manager, stores.openValues("memory:"), IdempotencyOptions::fromConfiguration(*configuration));
}

TEST(SettingTable, EachSettingOfHttpReachesItsFilter) {
  const auto value = [](const SettingRow& row) -> std::string {
    if (row.name.ends_with(".match")) return "* /*";
    if (row.value == "duration") return "1m";
    if (row.value == "on, off") return "off";
    if (row.name.ends_with("trustedProxies")) return "::1";
    if (row.name.ends_with("store")) return "memory:";
    if (row.value == "bytes") return "2000";
    if (row.value == "bits" || row.value == "number") return "48";
    return "all";
  };
  const std::string limit = "lockkeeper.limits.total.rate = 1/s\n";
  EXPECT_NO_THROW(makeFilters(limit + http(value)));
  for (const SettingRow& wrong : settingTable()) {
    if (!wrong.name.starts_with("lockkeeper.http") || wrong.name.ends_with("store")) continue;
    const auto oneWrong = [&](const SettingRow& row) {
      return row.name == wrong.name ? std::string("wr@ng") : value(row);
    };
    EXPECT_THROW(makeFilters(limit + http(oneWrong)), ConfigError) << wrong.name;
  }
}

TEST(SettingTable, AnEmptySettingOfHttpIsAsGoodAsNone) {
  EXPECT_NO_THROW(makeFilters(http([](const SettingRow&) { return std::string(); })));
  const std::string limit = "lockkeeper.limits.total.rate = 1/s\n";
  const std::string needed =
      "lockkeeper.http.routes.all.match = * /*\nlockkeeper.http.routes.all.limits.total = all\n"
      "lockkeeper.http.locks.all.match = * /*\nlockkeeper.http.locks.all.by = all\n"
      "lockkeeper.http.idempotency.routes.all.match = * /*\n"
      "lockkeeper.http.idempotency.routes.all.client = all\n";
  for (const SettingRow& row : settingTable()) {
    if (!row.name.starts_with("lockkeeper.http")) continue;
    std::string name(row.name);
    for (const std::string own : {"all", "other"}) {
      if (const auto star = name.find('*'); star != std::string::npos) name.replace(star, 1, own);
    }
    if (needed.find(name + " =") != std::string::npos) continue;
    EXPECT_NO_THROW(makeFilters(limit + needed + name + " =\n")) << name;
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

#include <Poco/Util/LayeredConfiguration.h>
#include <Poco/Util/MapConfiguration.h>
#include <Poco/Util/SystemConfiguration.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "configurations.h"
#include "lockkeeper/error.h"
#include "lockkeeper/poco/settings.h"
#include "refusal.h"

namespace lockkeeper::poco {
namespace {

using namespace std::chrono_literals;
using test::refusalOf;

std::string settingsRefusal(const std::string& text) {
  return refusalOf<ConfigError>([&] { readSettings(*properties(text)); });
}

void expectShop(const Settings& settings) {
  EXPECT_EQ(settings.store, "redis://h:6379/0");
  EXPECT_EQ(settings.manager.keyNamespace, "shop");
  EXPECT_EQ(settings.limiter.keyNamespace, "shop");
  EXPECT_EQ(settings.manager.lock.ttl, 10s);
  const RatePolicy sms = settings.policies().at("sms");
  EXPECT_EQ(sms.options().rate.count, 2);
  EXPECT_EQ(sms.limit(), 10);
  EXPECT_EQ(settings.migration.from, "redis+legacy://h/1?keyPrefix=lock:");
}

TEST(ReadSettings, TheSameFromPropertiesJsonXmlAndLayers) {
  const std::string file =
      "lockkeeper.store = redis://h:6379/0\nlockkeeper.namespace = shop\nlockkeeper.lock.ttl = 10s\n"
      "lockkeeper.limits.sms.rate = 2/s\nlockkeeper.limits.sms.burst = 10\n"
      "lockkeeper.migration.from = redis+legacy://h/1?keyPrefix=lock:\n";
  expectShop(readSettings(*properties(file)));
  expectShop(readSettings(*json(R"({"lockkeeper": {"store": "redis://h:6379/0", "namespace": "shop",
      "lock": {"ttl": "10s"}, "limits": {"sms": {"rate": "2/s", "burst": 10}},
      "migration": {"from": "redis+legacy://h/1?keyPrefix=lock:", "stateStore": null}}})")));
  expectShop(readSettings(*xml(R"(<config><lockkeeper>
      <store> redis://h:6379/0 </store><namespace>shop</namespace><lock><ttl>10s</ttl></lock>
      <limits><sms><rate>2/s</rate><burst>10</burst></sms></limits>
      <migration><from>redis+legacy://h/1?keyPrefix=lock:</from></migration></lockkeeper></config>)")));

  Poco::AutoPtr<Poco::Util::LayeredConfiguration> layers(new Poco::Util::LayeredConfiguration);
  layers->add(properties("lockkeeper.lock.ttl = 10s\nlockkeeper.limits.sms.burst = 10\n"), 0);
  layers->add(properties(file + "lockkeeper.lock.ttl = 1h\nlockkeeper.limits.sms.burst = 3\n"), 1);
  expectShop(readSettings(*layers));
}

TEST(ReadSettings, ReadsEachSetting) {
  const Settings settings = readSettings(*properties(
      "lockkeeper.lock.waitFor = 2s\nlockkeeper.lock.renew = manual\nlockkeeper.lock.maxHold = 5m\n"
      "lockkeeper.lock.safetyMargin = 3s\nlockkeeper.lock.owner = me\n"
      "lockkeeper.lock.operationTimeout = 4s\nlockkeeper.lock.longestOutage = "
      "forever\nlockkeeper.limiter.store = memory:\n"
      "lockkeeper.limiter.operationTimeout = 80ms\nlockkeeper.migration.phase = a:* = both, 5% = modern\n"
      "lockkeeper.migration.stateStore = redis://b\nlockkeeper.migration.name = fleet\n"
      "lockkeeper.migration.heartbeat = 2s\nlockkeeper.migration.lease = 9s\n"
      "lockkeeper.migration.maxTtl = 1m\nlockkeeper.migration.observation = 1h\n"
      "lockkeeper.tasks.report.atLeast = 3m\nlockkeeper.tasks.report.atMost = 4h\n"
      "lockkeeper.tasks.report.ttl = 50s\nlockkeeper.tasks.clean-up.ttl = 9s\n"));
  const ManagerOptions& manager = settings.manager;
  EXPECT_EQ(manager.lock.waitFor, 2s);
  EXPECT_EQ(manager.lock.renew, Renew::manual);
  EXPECT_EQ(manager.lock.maxHold, 5min);
  EXPECT_EQ(manager.lock.safetyMargin, 3s);
  EXPECT_EQ(manager.owner, "me");
  EXPECT_EQ(manager.operationTimeout, 4s);
  EXPECT_EQ(manager.longestOutage, forever);
  EXPECT_EQ(settings.limiterStore, "memory:");
  EXPECT_EQ(settings.limiter.operationTimeout, 80ms);
  const MigrationSettings& migration = settings.migration;
  EXPECT_EQ(migration.stateStore, "redis://b");
  EXPECT_EQ(migration.options.rules.text(), "a:* = both, 5% = modern");
  EXPECT_EQ(migration.options.name, "fleet");
  EXPECT_EQ(migration.options.heartbeat, 2s);
  EXPECT_EQ(migration.options.lease, 9s);
  EXPECT_EQ(migration.options.maxTtl, 1min);
  EXPECT_EQ(migration.options.observation, 1h);
  ASSERT_EQ(settings.tasks.size(), 2U);
  const TaskOptions& report = settings.tasks.at("report");
  EXPECT_EQ(report.name, "report");
  EXPECT_EQ(report.atLeast, 3min);
  EXPECT_EQ(report.atMost, 4h);
  EXPECT_EQ(report.ttl, 50s);
  EXPECT_EQ(settings.tasks.at("clean-up").ttl, 9s);
}

TEST(ReadSettings, FollowsReferencesAndLeavesPasswordsToTheStore) {
  setenv("LOCKKEEPER_TEST_HOST", "10.0.0.5", 1);
  Poco::AutoPtr<Poco::Util::LayeredConfiguration> layers(new Poco::Util::LayeredConfiguration);
  layers->add(new Poco::Util::SystemConfiguration, 0);
  layers->add(properties("shop.db = 3\nlockkeeper.store = "
                         "redis://:${REDIS_PASSWORD}@${system.env.LOCKKEEPER_TEST_HOST}/${shop.db}\n"),
              1);
  EXPECT_EQ(readSettings(*layers).store, "redis://:${REDIS_PASSWORD}@10.0.0.5/3");
  EXPECT_EQ(settingsRefusal("lockkeeper.lock.ttl = ${lockkeeper.lock.ttl}\n"),
            "lockkeeper.lock.ttl cannot be read: Too many property references encountered");
}

TEST(ReadSettings, AnEmptyValueIsAsGoodAsNone) {
  const Settings settings =
      readSettings(*properties("lockkeeper.store =\nlockkeeper.lock.ttl =\nlockkeeper.limits.sms.burst =\n"
                               "lockkeeper.limits.sms.rate = 1/s\n"));
  EXPECT_EQ(settings.store, "");
  EXPECT_EQ(settings.manager.lock.ttl, std::nullopt);
  EXPECT_EQ(settings.policies().at("sms").limit(), 1);
}

TEST(ReadSettings, NamesTheNearestKnownSetting) {
  const auto unknown = [](const std::string& name) {
    const std::string message = settingsRefusal("lockkeeper." + name + " = 1\n");
    const std::string head = "the setting 'lockkeeper." + name + "' is unknown: did you mean lockkeeper.";
    EXPECT_EQ(message.substr(0, head.size()), head);
    return message.substr(std::min(head.size(), message.size()));
  };
  EXPECT_EQ(unknown("stroe"), "store?");
  EXPECT_EQ(unknown("nameSpace"), "namespace?");
  EXPECT_EQ(unknown("lock.tll"), "lock.ttl?");
  EXPECT_EQ(unknown("lock.waitfor"), "lock.waitFor?");
  EXPECT_EQ(unknown("lok.ttl"), "lock.ttl?");
  EXPECT_EQ(unknown("limits.sms.brust"), "limits.sms.burst?");
  EXPECT_EQ(unknown("limits.sms"), "limits.sms.rate?");
  EXPECT_EQ(unknown("limit.sms.kind"), "limits.sms.kind?");
  EXPECT_EQ(unknown("limits.a.rates"), "limits.a.rate?");
  EXPECT_EQ(unknown("tasks.report.atleast"), "tasks.report.atLeast?");
  EXPECT_EQ(unknown("task.report.atMost"), "tasks.report.atMost?");
  EXPECT_EQ(unknown("migration.phaze"), "migration.phase?");
  EXPECT_EQ(unknown("migration.board"), "migration.stateStore?") << "as it was called once";
  EXPECT_EQ(unknown("http.routes.sms.mach"), "http.routes.sms.match?");
  EXPECT_EQ(unknown("http.route.sms.limits.total"), "http.routes.sms.limits.total?");
  EXPECT_EQ(refusalOf<ConfigError>(
                [] { readSettings(*json(R"({"lockkeeper": {"lock": {"ttl": "9s", "tlt": null}}})")); }),
            "the setting 'lockkeeper.lock.tlt' is unknown: did you mean lockkeeper.lock.ttl?");
  EXPECT_EQ(refusalOf<ConfigError>(
                [] { readSettings(*xml("<c><lockkeeper><lock><ttL>9s</ttL></lock></lockkeeper></c>")); }),
            "the setting 'lockkeeper.lock.ttL' is unknown: did you mean lockkeeper.lock.ttl?");
  EXPECT_EQ(settingsRefusal("lockkeeperr.store = x\nshop.limits = 3\n"), "accepted") << "not ours";
}

TEST(ReadSettings, SaysWhatToDoInsteadOfASettingThatIsNoLongerSupported) {
  for (const std::string setting :
       {"lockkeeper.limits.shop.sms.prefetch", "lockkeeper.limits.sms.prefetchIdle"}) {
    EXPECT_EQ(settingsRefusal(setting + " = 0\n"),
              "the setting '" + setting +
                  "' is no longer supported: remove it, and each call is decided by the store; calls of one "
                  "process for the same key share requests by themselves");
  }
}

TEST(ReadSettings, NamesMayHaveDots) {
  const std::string name = "lockkeeper.limits.shop.sms.rate";
  EXPECT_EQ(readSettings(*properties(name + " = 3/h\n")).policies().at("shop.sms").limit(), 3);
  EXPECT_EQ(readSettings(*json(R"({"lockkeeper": {"limits": {"shop": {"sms": {"rate": "3/h"}}}}})"))
                .policies()
                .at("shop.sms")
                .limit(),
            3);
  EXPECT_EQ(readSettings(*properties("lockkeeper.tasks.clean.up.ttl = 9s\n")).tasks.at("clean.up").ttl, 9s);
}

TEST(ReadSettings, NamesTheValueThatIsWrong) {
  const auto noDuration = [](const std::string& setting, const std::string& text) {
    EXPECT_EQ(settingsRefusal(setting + " = " + text + "\n"),
              setting + ": '" + text +
                  "' is not a duration: a whole number with a unit is, such as 250ms, 30s, 5m or 1h");
  };
  noDuration("lockkeeper.lock.ttl", "30");
  noDuration("lockkeeper.lock.maxHold", "1.5s");
  noDuration("lockkeeper.migration.lease", "15 s");
  noDuration("lockkeeper.tasks.report.atMost", "20");
  EXPECT_EQ(settingsRefusal("lockkeeper.namespace = my shop\n"),
            "lockkeeper.namespace is 'my shop': 1 to 64 characters of [A-Za-z0-9_.-] are allowed");
  EXPECT_EQ(settingsRefusal("lockkeeper.migration.name = a/b\n"),
            "lockkeeper.migration.name is 'a/b': 1 to 64 characters of [A-Za-z0-9_.-] are allowed");
  EXPECT_EQ(settingsRefusal("lockkeeper.lock.renew = always\n"),
            "lockkeeper.lock.renew is 'always': automatic and manual are allowed");
  EXPECT_EQ(
      settingsRefusal("lockkeeper.migration.phase = order:* 101% = both\n"),
      "lockkeeper.migration.phase: the rule 'order:* 101% = both' has the percentage '101%': 0% to 100%, in "
      "whole numbers, are allowed");
  EXPECT_EQ(settingsRefusal("lockkeeper.migration.maxTtl = 25h\n"),
            "lockkeeper.migration.maxTtl is 25h: it must be 10ms to 24h");
  EXPECT_EQ(settingsRefusal("lockkeeper.lock.ttl = 25h\n"),
            "lockkeeper.lock: ttl is 25h: it must be 10ms to 24h");
  EXPECT_EQ(settingsRefusal("lockkeeper.lock.longestOutage = 25h\n"),
            "lockkeeper.lock: longestOutage is 25h: it must be 1ms to 24h");
  EXPECT_EQ(settingsRefusal("lockkeeper.lock.operationTimeout = 2h\n"),
            "lockkeeper.lock: operationTimeout is 2h: it must be 1ms to 1h");
  const auto limit = [](const std::string& text) {
    return refusalOf<ConfigError>([&] { readSettings(*properties(text)).policies(); });
  };
  EXPECT_EQ(limit("lockkeeper.limits.sms.burst = 3\n"), "limit 'sms': rate is missing, such as rate = 2/s");
  EXPECT_EQ(limit("lockkeeper.limits.sms.rate = 5\n"),
            "limit 'sms': rate: '5' is not a rate: a whole number by a time is, such as 2/s, 100/min, 1/day "
            "or 5/30s");
}

}  // namespace
}  // namespace lockkeeper::poco

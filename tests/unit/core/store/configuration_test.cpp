#include <gmock/gmock.h>

#include "lock/manager_fixture.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/store_registry.h"
#include "lockkeeper/testing/fake_fences.h"
#include "refusal.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeFences;
namespace {

class BadInputTest : public ManagerFixture {
 protected:
  std::string refusal(std::string_view key, const LockOptions& lockOptions) {
    const auto message = refusalOf([&] { (void)manager.tryLock(key, lockOptions); });
    EXPECT_EQ(network->calls(Call::acquire), 0) << "something was sent";
    return message;
  }
};

TEST_F(BadInputTest, OptionsOutOfRangeAreNamedWithWhatIsAllowed) {
  EXPECT_EQ(refusal("k", {.ttl = 0ms}), "ttl is 0s: it must be 10ms to 24h");
  EXPECT_EQ(refusal("k", {.ttl = -5ms}), "ttl is -5ms: it must be 10ms to 24h");
  EXPECT_EQ(refusal("k", {.ttl = 25h}), "ttl is 25h: it must be 10ms to 24h");
  EXPECT_EQ(refusal("k", {.waitFor = -1ms}), "waitFor is -1ms: it must be 0s to 24h");
  EXPECT_EQ(refusal("k", {.maxHold = 0ms}).substr(0, 33), "maxHold is 0s: it must be 1ms to ");
  EXPECT_EQ(refusal("k", {.ttl = 10s, .safetyMargin = 5s}), "safetyMargin is 5s: it must be 0s to 4898ms");
}

TEST_F(BadInputTest, KeysThatNoDriverTakesAreRefused) {
  EXPECT_EQ(refusal("", {}), "the key is empty: it must have 1 to 512 bytes");
  EXPECT_EQ(refusal(std::string(513, 'x'), {}),
            "the key '" + std::string(64, 'x') + "...' has 513 bytes: at most 512 are allowed");
  EXPECT_EQ(refusal("a:lockkeeper:b", {}),
            "the key 'a:lockkeeper:b' contains the reserved text ':lockkeeper:'");
  EXPECT_TRUE(manager.tryLock(std::string(512, '\0')));
}

TEST_F(BadInputTest, ManagersWithBadOptionsAreNotMade) {
  const auto made = [&](auto change) {
    auto bad = options();
    change(bad);
    return refusalOf([&] { LockManager(store, bad); });
  };
  EXPECT_EQ(made([](auto& o) { o.keyNamespace = "a b"; }),
            "the namespace is 'a b': 1 to 64 characters of [A-Za-z0-9_.-] are allowed");
  EXPECT_EQ(made([](auto& o) { o.owner = "me@home"; }),
            "the owner 'me@home' is not 1 to 64 printable characters without '@', the last one not '~'");
  EXPECT_NE(made([](auto& o) { o.owner = "home~"; }).find("the owner 'home~' is not"), std::string::npos);
  EXPECT_NO_THROW(LockManager(store, ManagerOptions{.owner = "~home"}));
  EXPECT_EQ(made([](auto& o) { o.operationTimeout = 0ms; }), "operationTimeout is 0s: it must be 1ms to 1h");
  EXPECT_EQ(refusalOf([&] {
              auto bad = options();
              bad.lock.ttl = 25h;
              LockManager(store, bad);
            }),
            "ttl is 25h: it must be 10ms to 24h");
  EXPECT_THROW(LockManager(nullptr), std::invalid_argument);
}

TEST_F(BadInputTest, CallsThatDoNotSayHowTakeTheManagersOptions) {
  auto some = options();
  some.lock.ttl = 7s;
  LockManager own(store, some);
  EXPECT_EQ(own.defaults().ttl, 7s);
  EXPECT_LE(own.lock("a").remaining(), 7s);
  EXPECT_LE(own.tryLock("a")->remaining(), 7s);
  own.withLock("a", [](Lock& lock) { EXPECT_LE(lock.remaining(), 7s); });
  EXPECT_LE(own.lock("a", {.waitFor = 1h}).remaining(), 7s) << "what a call does not name is the manager's";
  EXPECT_GT(own.lock("a", {.ttl = 30s}).remaining(), 20s);
}

TEST_F(BadInputTest, WhatNobodyNamesIsAsDocumented) {
  EXPECT_EQ(manager.defaults().ttl, 30s);
  EXPECT_EQ(manager.defaults().renew, Renew::automatic);
  const Lock held = manager.lock("a");
  EXPECT_EQ(held.remaining(), 30s - 302ms - 3s) << "less the drift and the safety margin";
}

TEST_F(BadInputTest, ACallCanLiftTheBoundsOfTheManager) {
  auto some = options();
  some.lock.maxHold = 1s;
  some.lock.waitFor = 0ms;
  LockManager bounded(store, some);
  EXPECT_LE(bounded.lock("a").remaining(), 1s);
  EXPECT_GT(bounded.lock("a", {.maxHold = forever}).remaining(), 20s);
  EXPECT_GT(bounded.lock("a", {.maxHold = forever - 1ms}).remaining(), 20s) << "as good as none";
  const Lock held = bounded.lock("a");
  EXPECT_THROW((void)bounded.lock("a"), LockTimeout);
  auto waiting = std::async(std::launch::async, [&] { return bounded.lock("a", {.waitFor = forever}); });
  EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
  bounded.stop();
  EXPECT_THROW(waiting.get(), Cancelled);
}

TEST(Duration, ReadsWhatItWritesAndNamesWhatItDoesNot) {
  for (const auto* text : {"250ms", "30s", "5m", "1h", "0s", "24h", "1500ms"}) {
    EXPECT_EQ(formatDuration(parseDuration("ttl", text)), text);
  }
  for (const auto* text :
       {"", "5", "s", "5 s", "-5s", "5.5s", "5d", "5sx", "99999999999999999999s", "9223372036854775807h"}) {
    EXPECT_EQ(refusalOf<ConfigError>([&] { parseDuration("lock.ttl", text); }),
              "lock.ttl: " + quoted(text) +
                  " is not a duration: a whole number with a unit is, such as 250ms, 30s, 5m or 1h");
  }
}

TEST(StoreRegistry, AsksWhetherAnotherSchemeOfThatStoreWasMeant) {
  StoreRegistry registry;
  const auto none = [](const StoreUri&, const Environment&) { return std::shared_ptr<LockDriver>(); };
  for (const char* scheme : {"mysql+getlock", "mysql+version", "postgres+version"})
    registry.add(scheme, none);
  const std::vector<std::pair<std::string, std::string>> questions{
      {"mysql://host/db", "mysql+getlock or mysql+version"},
      {"postgresql://host/db", "postgres+version"},
      {"mysql+versoin://host/db", "mysql+version"}};
  for (const auto& question : questions) {
    EXPECT_THAT(refusalOf<ConfigError>([&] { registry.open(question.first); }),
                ::testing::EndsWith("postgres+version; did you mean " + question.second + "?"))
        << question.first;
  }
}

TEST(StoreRegistry, OpensRegisteredSchemesAndNamesThemOtherwise) {
  StoreRegistry registry;
  EXPECT_TRUE(registry.open("memory:"));
  EXPECT_TRUE(registry.knows("memory"));
  EXPECT_FALSE(registry.knows("zookeeper"));
  EXPECT_EQ(refusalOf<ConfigError>([&] { registry.open("zookeeper://host"); }),
            "no driver is registered for the scheme 'zookeeper': this program knows memory");
  EXPECT_EQ(
      refusalOf<ConfigError>([&] { registry.open("memmory:"); }),
      "no driver is registered for the scheme 'memmory': this program knows memory; did you mean memory?");
  EXPECT_EQ(refusalOf<ConfigError>([&] { registry.open("memory:?size=3"); }),
            "the store's parameter 'size' is unknown: memory knows none");
  EXPECT_EQ(refusalOf<ConfigError>([&] { registry.open("memory://host"); }),
            "the store 'memory:' takes no host and no path");
  EXPECT_THROW(registry.add("memory", nullptr), std::invalid_argument);
}

TEST(StoreRegistry, LetsAStoreOpenItsParts) {
  StoreRegistry registry;
  const auto fences = std::make_shared<FakeFences>();
  registry.addFences("counter", [&](const StoreUri&, const Environment&) { return fences; });
  std::shared_ptr<FenceSource> opened;
  registry.addComposition(
      "mirror", [&](const StoreUri& uri, const Environment& environment, const StoreRegistry& parts) {
        opened = parts.openFences(*uri.parameter("fenceStore"), environment);
        return parts.open("memory:", environment);
      });
  EXPECT_TRUE(registry.open("mirror:?fenceStore=counter:"));
  EXPECT_EQ(opened, fences);
  EXPECT_EQ(refusalOf<ConfigError>([&] { registry.open("mirror:?fenceStore=memory:"); }),
            "no source of fences is registered for the scheme 'memory': this program knows counter");
  EXPECT_THROW(registry.addComposition("memory", nullptr), std::invalid_argument);
  EXPECT_THROW(registry.addFences("counter", nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace lockkeeper::test

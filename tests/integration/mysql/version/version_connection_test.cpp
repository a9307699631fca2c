// Sessions that die, servers that restart, forks; and how many sessions there are.

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "forked_child.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/server_rows.h"
#include "lockkeeper/store_uri.h"
#include "no_threads.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using VersionConnection = VersionTest;

TEST_P(VersionConnection, KilledSessionsLoseNoCount) {
  constexpr int threadCount = 4;
  constexpr int rounds = 60;
  LockManager first(store.open());
  LockManager second(store.open());
  std::atomic<int> counter{0};
  std::atomic<int> finished{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < threadCount; ++i) {
    threads.emplace_back([&, manager = i % 2 == 0 ? &first : &second] {
      for (int round = 0; round < rounds; ++round) {
        // A release whose reply is lost leaves the key to its ttl at the worst.
        Lock lock = manager->lock("counter", {.ttl = 2s, .waitFor = 60s});
        const int seen = counter.load();
        std::this_thread::sleep_for(1ms);
        counter.store(seen + 1);
      }
      ++finished;
    });
  }
  int killed = 0;
  while (finished < threadCount) {
    killed += store.server.killSessions();
    std::this_thread::sleep_for(10ms);
  }
  threads.clear();
  EXPECT_EQ(counter, threadCount * rounds);
  EXPECT_GT(killed, 4);
}

TEST_P(VersionConnection, SessionsThatDiedWhileNobodyUsedThemAreNotNoticed) {
  for (int i = 0; i < 5; ++i) {
    const Claimant who{};
    EXPECT_TRUE(granted(store.direct->acquire(who.request())));
    EXPECT_EQ(store.direct->release(who.claim(), soon()), ReleaseOutcome::released);
    EXPECT_GE(store.server.killSessions(), 1);
    EXPECT_TRUE(waitUntil([&] { return store.server.sessions() == 0; }));
  }
}

TEST_P(VersionConnection, LocksAndFencesSurviveARestartOfTheServer) {
  LockManager manager(store.direct);
  Lock before = manager.lock("k", {.ttl = longTtl});
  store.server.kill();
  EXPECT_THROW((void)manager.tryLock("other"), Error);
  store.server.restart();
  LockManager other(store.open());
  Lock after = other.lock("other", {.waitFor = 30s});
  EXPECT_TRUE(after.valid());
  EXPECT_FALSE(other.tryLock("k"));
  EXPECT_TRUE(before.valid());
  const auto fence = before.fence();
  EXPECT_EQ(before.release(), ReleaseResult::released);
  EXPECT_GT(other.lock("k").fence(), fence);
}

TEST_P(VersionConnection, AStatementThatIsRefusedAsSuchIsPreparedAgain) {
  constexpr std::uint16_t unknown = 1243;      // a proxy has put another session behind ours
  constexpr std::uint16_t notPrepared = 1615;  // a schema change is under way
  constexpr std::uint16_t tooMany = 1461;
  const auto driver = store.openProxied("connections=1");
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const auto claimRefusedBy = [&](std::uint16_t error) {
    store.proxy.set({.kind = ProxyFault::Kind::replace, .text = DatabaseServer::refusal(error)});
    (void)driver->acquire(who.request(soon(), true));
  };
  EXPECT_THROW(claimRefusedBy(unknown), OutcomeUnknown);
  EXPECT_EQ(store.proxy.fired(), 1U);
  EXPECT_TRUE(granted(driver->acquire(who.request(soon(), true))));
  EXPECT_THROW(claimRefusedBy(notPrepared), StoreUnavailable);
  EXPECT_EQ(store.proxy.fired(), 1U);
  EXPECT_TRUE(granted(driver->acquire(who.request(soon(), true))));
  EXPECT_THROW(claimRefusedBy(tooMany), StoreUnavailable);
  EXPECT_EQ(store.proxy.fired(), 1U);
  EXPECT_TRUE(granted(driver->acquire(who.request(soon(), true))));
}

/// What a server says first that wants the password as it is.
std::string greetingThatAsksForThePassword() {
  using namespace std::string_literals;
  const std::string body = "\x0a"s + "10.11.6-MariaDB\0"s + "\x01\0\0\0"s + "12345678\0"s +
                           "\x09\x82\x2d\x02\0\x08\0\x15"s +  // capabilities, character set, status
                           std::string(10, '\0') + "123456789012\0"s + "mysql_clear_password\0"s;
  return std::string(1, static_cast<char>(body.size())) + "\0\0\0"s + body;
}

TEST_P(VersionConnection, AServerThatAsksForThePasswordAsItIsDoesNotGetIt) {
  const auto driver = store.openProxied("connections=1");
  store.proxy.set({.kind = ProxyFault::Kind::replace, .text = greetingThatAsksForThePassword()});
  try {
    (void)driver->acquire(Claimant{}.request());
    ADD_FAILURE() << "is let in";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("'mysql_clear_password'"), std::string::npos) << error.what();
  }
  EXPECT_EQ(store.proxy.fired(), 1U);
  EXPECT_EQ(store.proxy.requests(), 0U) << "it has sent an answer";
}

TEST_P(VersionConnection, AnAnswerWithoutAFenceIsNoGrant) {
  const auto driver = store.openProxied("connections=1");
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const std::string done("\x07\0\0\x01\0\x01\0\x02\0\0\0", 11);  // one row is changed; no insert id
  store.proxy.set({.kind = ProxyFault::Kind::replace, .text = done});
  EXPECT_THROW((void)driver->acquire(who.request(soon(), true)), ProtocolError);
  EXPECT_EQ(store.proxy.fired(), 1U);
  EXPECT_TRUE(granted(driver->acquire(who.request(soon(), true))));
}

TEST_P(VersionConnection, ManyThreadsShareAsManySessionsAsTheUriSays) {
  constexpr int most = 3;
  store.server.killSessions();
  const auto driver = store.open("connections=3");
  std::atomic<bool> stop{false};
  std::atomic<int> grants{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const Claimant who{};
        if (granted(driver->acquire(who.request()))) ++grants;
        EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
      }
    });
  }
  int seen = 0;
  EXPECT_TRUE(waitUntil([&] {
    seen = std::max(seen, store.server.sessions());
    return grants > 500;
  }));
  stop = true;
  threads.clear();
  EXPECT_EQ(seen, most);
}

// MySQL does not notice that a client has left while its statement waits for a table: it would go on waiting,
// and take the key in the end.
TEST_P(VersionConnection, ALockedTableFillsNoServerAndTakesNoKeyForNobody) {
  constexpr int callers = 4;
  ASSERT_TRUE(store.isFree("k")) << "makes the table";
  store.server.killSessions();
  ASSERT_TRUE(waitUntil([&] { return store.server.sessions() == 0; }));
  const auto driver = store.open("connections=" + std::to_string(callers));
  // Not by Poco: MySQL does not prepare it.
  mysql::ServerRows rows(StoreUri::parse(store.server.uri(store.database)), {.operationTimeout = 1min});
  auto other = rows.begin();
  other.execute("LOCK TABLES lockkeeper_locks READ", {});
  int most = 0;
  {
    std::atomic<int> running = callers;
    std::vector<std::jthread> threads;
    for (int i = 0; i < callers; ++i) {
      threads.emplace_back([&] {
        for (int attempt = 0; attempt < 3; ++attempt)
          EXPECT_THROW((void)driver->acquire(Claimant{}.request(in(4s))), StoreUnavailable);
        --running;
      });
    }
    while (running > 0) most = std::max(most, store.server.sessions());
  }
  EXPECT_LE(most, 1 + callers);
  // Those who leave sooner than the server gives up.
  for (int attempt = 0; attempt < 20; ++attempt) {
    EXPECT_THROW((void)driver->acquire(Claimant{}.request(in(300ms))), Error);
    most = std::max(most, store.server.sessions());
  }
  EXPECT_LE(most, 1 + callers + 8) << "those of the last second";
  EXPECT_TRUE(waitUntil([&] {
    return store.ask(
               "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for %'") == "0";
  }));
  other.execute("UNLOCK TABLES", {});
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE token <> ''"), "0");
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
}

TEST_P(VersionConnection, WithoutAThreadIsUnavailableUntilThereIsOne) {
  const auto driver = store.open();
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  {
    const NoThreads none;
    for (int attempt = 0; attempt < 3; ++attempt)
      EXPECT_THROW((void)driver->acquire(Claimant{}.request()), StoreUnavailable);
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
}

TEST_P(VersionConnection, AForkedChildOwnsNothingAndTheParentsLockLivesOn) {
  auto driver = store.openProxied();
  auto manager = std::make_unique<LockManager>(driver);
  std::optional<Lock> lock = manager->lock("k", {.ttl = 4s});
  const std::size_t connections = store.proxy.connections();
  const Claimant who{};
  const int failedCheck = inForkedChild([&] {
    if (lock->valid()) return 1;
    if (!throwsForked([&] { (void)manager->tryLock("k"); })) return 2;
    if (!throwsForked([&] { (void)driver->acquire(who.request()); })) return 3;
    if (!throwsForked([&] { (void)driver->release(who.claim(), soon()); })) return 4;
    if (!throwsForked([&] { (void)driver->holder("k", soon()); })) return 5;
    if (!throwsForked([&] { driver->renew({}, soon()); })) return 6;
    auto& permits = *capability<Permits>(*driver);
    if (!throwsForked([&] { (void)permits.shareHolders("k", soon()); })) return 7;
    if (!throwsForked([&] { (void)permits.resize("k", 3, soon()); })) return 8;
    lock.reset();
    manager.reset();
    driver.reset();
    return 0;
  });
  EXPECT_EQ(failedCheck, 0);
  const Instant later = in(5s);
  while (now() < later) {
    ASSERT_TRUE(lock->valid()) << "the parent goes on renewing";
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(store.proxy.connections(), connections)
      << "the child has connected, or ended the parent's connection";
  EXPECT_EQ(lock->release(), ReleaseResult::released);
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionConnection, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

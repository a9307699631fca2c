#include <atomic>
#include <thread>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using LostConnection = RedisFaultTest;

/// Threads of two managers count under one lock while `disturb` happens again and again.
template <class Disturb>
void countsRightWhile(std::uint16_t port, Disturb disturb) {
  constexpr int threadCount = 4;
  constexpr int rounds = 60;
  LockManager first(openRedis(port));
  LockManager second(openRedis(port));
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
  while (finished < threadCount) disturb();
  threads.clear();
  EXPECT_EQ(counter, threadCount * rounds);
}

TEST_F(LostConnection, ClientKillInTheMiddleLosesNoCount) {
  int killed = 0;
  countsRightWhile(server.port(), [&] {
    killed += std::stoi(server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
    std::this_thread::sleep_for(10ms);
  });
  EXPECT_GT(killed, 4);
}

TEST_F(LostConnection, ScriptFlushLosesNoCount) {
  countsRightWhile(server.port(), [&] {
    EXPECT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    std::this_thread::sleep_for(5ms);
  });
}

TEST_F(LostConnection, ScriptFlushIsNotNoticedByTheCaller) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    const Claimant who{};
    ASSERT_TRUE(granted(direct->acquire(who.request())));
    EXPECT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    Renewal renewal{.claim = who.claim(), .ttl = longTtl};
    direct->renew({&renewal, 1}, soon());
    EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
    EXPECT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    EXPECT_EQ(direct->holder(who.key, soon())->owner, "test:1");
    EXPECT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    EXPECT_EQ(direct->release(who.claim(), soon()), ReleaseOutcome::released);
  }
}

TEST_F(LostConnection, WorksAgainAfterARestartOfTheServer) {
  LockManager manager(direct);
  Lock before = manager.lock("k", {.ttl = 1s});
  server.kill();
  EXPECT_THROW((void)manager.tryLock("other"), Error);
  server.restart();
  Lock after = manager.lock("other", {.waitFor = 30s});
  EXPECT_TRUE(after.valid());
  EXPECT_TRUE(waitUntil([&] { return before.lost().stop_requested(); })) << "the server has forgotten it";
}

TEST_F(LostConnection, ALockSurvivesAShortOutageOfTheNetwork) {
  for (const char* scheme : {"redis", "redis+legacy"}) {
    const std::size_t before = proxy.connections();
    LockManager manager(openRedis(proxy.port(), "", scheme));
    Lock lock = manager.lock("k", {.ttl = 3s});
    for (const Ending ending : {Ending::fin, Ending::rst}) {
      proxy.endConnections(ending);
      EXPECT_NO_THROW({
        try {
          lock.renew();
        } catch (const OutcomeUnknown&) {  // The driver may find out by this very request.
          lock.renew();
        }
      });
    }
    EXPECT_GE(proxy.connections(), before + 3);
    EXPECT_TRUE(lock.valid());
    EXPECT_EQ(lock.release(), ReleaseResult::released);
  }
}

TEST_F(LostConnection, TheDatabaseIsSelectedOnEachConnection) {
  StoreRegistry registry;
  redis::use(registry);
  const auto driver = registry.open("redis://127.0.0.1:" + std::to_string(proxy.port()) + "/5");
  for (int i = 0; i < 3; ++i) {
    const Claimant who{};
    ASSERT_TRUE(waitUntil([&] {
      try {
        return granted(driver->acquire(who.request(soon(), true)));
      } catch (const Error&) {
        return false;
      }
    }));
    EXPECT_TRUE(isFree(who.key)) << "database 0 is not ours";
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
    proxy.endConnections(Ending::fin);
  }
  EXPECT_EQ(proxy.connections(), 3U);
}

}  // namespace
}  // namespace lockkeeper::test

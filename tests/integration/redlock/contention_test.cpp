#include <atomic>
#include <barrier>
#include <future>
#include <thread>

#include "lockkeeper/internal/backoff.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using Contention = RedlockTest;

TEST_F(Contention, OfTwentyContendersSomeoneWinsInEachRoundOnAverage) {
  constexpr int contenders = 20;
  constexpr int winsOfEach = 5;
  const std::string key = "hot";
  std::atomic<int> attempts{0};
  std::atomic<int> wins{0};
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::vector<std::shared_ptr<LockDriver>> drivers;
  for (int i = 0; i < contenders; ++i) {
    drivers.push_back(open("restartGuard=off&nodeTimeout=5s"));
    (void)drivers.back()->holder(key, soon());  // connects
  }
  {
    std::vector<std::jthread> threads;
    for (const auto& driver : drivers) {
      threads.emplace_back([&, driver] {
        for (int won = 0; won < winsOfEach;) {
          Backoff backoff(5ms, 250ms);
          while (true) {
            Claimant who;
            who.key = key;
            ++attempts;
            if (granted(driver->acquire(who.request(in(30s))))) {
              if (inside.fetch_add(1) != 0) ++overlaps;
              std::this_thread::yield();
              inside.fetch_sub(1);
              ++won;
              ++wins;
              (void)driver->release(who.claim(), soon());
              break;
            }
            (void)pauseUntil(*systemClock(), now() + backoff.next(*systemRandom()));
          }
        }
      });
    }
  }
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(wins, contenders * winsOfEach);
  EXPECT_LE(attempts, contenders * wins) << "split votes hold up everybody";
  EXPECT_TRUE(waitUntil([&] { return votes(key) == 0; }));
}

TEST_F(Contention, ABusyKeyIsBusyWithAHintAndKeepsNoVotesOfTheLoser) {
  const auto driver = open();
  ASSERT_TRUE(allAgree(*driver));
  const Claimant holds{};
  Claimant loses;
  loses.key = holds.key;
  ASSERT_TRUE(granted(driver->acquire(request(holds, 20s))));
  ASSERT_TRUE(waitUntil([&] { return votes(holds.key) == nodeCount; }));
  AcquireRequest asks = request(loses, 20s);
  asks.waits = true;
  const AcquireResult result = driver->acquire(asks);
  ASSERT_TRUE(std::holds_alternative<Busy>(result));
  ASSERT_TRUE(std::get<Busy>(result).retryAfter);
  EXPECT_GT(*std::get<Busy>(result).retryAfter, 1s);
  EXPECT_LE(*std::get<Busy>(result).retryAfter, 20s);
}

TEST_F(Contention, VotesThatMakeNoQuorumAreGivenBackBeforeTheCallerIsTold) {
  const auto driver = open("restartGuard=off&nodeTimeout=5s&ioTimeout=5s");
  ASSERT_TRUE(allAgree(*driver));
  const Claimant who{};
  for (std::size_t node = 0; node < 3; ++node) {
    ASSERT_EQ(servers[node].command({"SET", who.key, "somebody else", "PX", "60000"}), "OK");
  }
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(std::holds_alternative<Busy>(driver->acquire(who.request())));
    EXPECT_EQ(votes(who.key), 3U);
  }
  proxies[3]->set({.kind = ProxyFault::Kind::step, .text = "EVAL"});
  auto last = std::async(std::launch::async, [&] { return driver->acquire(who.request()); });
  EXPECT_TRUE(waitUntil([&] { return proxies[3]->fired() == 1; }));
  EXPECT_EQ(last.wait_for(200ms), std::future_status::timeout) << "a node has not given its vote back";
  proxies[3]->passThrough();
  EXPECT_TRUE(std::holds_alternative<Busy>(last.get()));
  for (std::size_t node = 0; node < 3; ++node)
    EXPECT_EQ(servers[node].command({"GET", who.key}), "somebody else");
  EXPECT_FALSE(driver->holder(Claimant{}.key, soon()));
}

// Of five replies a caller waits for three. The other two lie there until somebody reads them, and are
// overdue by then: those who come together with the one who reads must not take their nodes for silent.
TEST_F(Contention, CallersWhoComeTogetherAfterAPauseAskAllNodes) {
  constexpr int callers = 8;
  constexpr int rounds = 40;
  const auto seen = std::make_shared<Rounds>();
  const auto driver = open("restartGuard=off&nodeTimeout=100ms", seen);
  ASSERT_TRUE(allAgree(*driver));
  std::barrier together(callers);
  std::atomic<int> grants{0};
  seen->clear();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < callers; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
          (void)pauseUntil(*systemClock(), in(110ms));
          together.arrive_and_wait();
          const Claimant who{};
          try {
            grants += granted(driver->acquire(who.request(in(30s))));
            (void)driver->release(who.claim(), soon());
          } catch (const Error&) {  // a machine under load was too slow
          }
        }
      });
    }
  }
  EXPECT_GT(grants, callers * rounds / 2);
  for (const std::uint16_t port : ports()) EXPECT_EQ(seen->count(port, NodeOutcome::leftOut), 0);
}

}  // namespace
}  // namespace lockkeeper::test

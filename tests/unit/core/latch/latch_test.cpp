#include "lockkeeper/latch/latch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/fake_random.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
using lockkeeper::testing::FakeRandom;
namespace {

using namespace std::chrono_literals;

/// Values in memory behind a network that fails on demand.
class FaultyLatchValues final : public ValueStore {
 public:
  explicit FaultyLatchValues(std::shared_ptr<Clock> clock) : values_(std::move(clock)) {}

  std::optional<std::string> get(std::string_view key, Instant deadline) override {
    ++reads;
    latestDeadline = std::max(latestDeadline.load(), deadline);
    onRead();
    if (down) throw StoreUnavailable("down, says the test");
    return values_.get(key, deadline);
  }
  void put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override {
    latestDeadline = std::max(latestDeadline.load(), deadline);
    onWrite();
    if (down) throw StoreUnavailable("down, says the test");
    values_.put(key, value, ttl, deadline);
    if (repliesToLose-- > 0) throw OutcomeUnknown("reply lost, says the test");
  }
  bool add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override {
    return values_.add(key, value, ttl, deadline);
  }
  bool erase(std::string_view key, Instant deadline) override { return values_.erase(key, deadline); }

  std::atomic<bool> down{false};
  std::atomic<int> repliesToLose{0};
  std::atomic<int> reads{0};
  std::atomic<Instant> latestDeadline{Instant::min()};
  std::function<void()> onRead = [] {};
  std::function<void()> onWrite = [] {};

 private:
  MemoryValues values_;
};

class LatchTest : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;

  LatchOptions options() {
    return {.keyNamespace = "shop", .keep = 1h, .environment = {clock, std::make_shared<FakeRandom>(7), {}}};
  }
  /// As one process has it.
  CountDownLatch latch(std::string name = "import") {
    return {values, std::move(name), {"a", "b", "c"}, options()};
  }

  /// Lets time pass until `future` is ready.
  template <class Result>
  Result ending(std::future<Result>& future) {
    while (future.wait_for(0s) != std::future_status::ready) {
      clock->advance(1ms);
      std::this_thread::yield();
    }
    return future.get();
  }

  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  std::shared_ptr<FaultyLatchValues> values = std::make_shared<FaultyLatchValues>(clock);
};

TEST_F(LatchTest, OpensForEverybodyWhenAllHaveCountedDownAndNotBefore) {
  CountDownLatch mine = latch();
  CountDownLatch yours = latch();
  auto waiting = std::async(std::launch::async, [&] { return yours.wait(); });
  mine.countDown("c");
  mine.countDown("a");
  EXPECT_EQ(yours.missing(), Names{"b"});
  EXPECT_FALSE(mine.wait(0ms));
  EXPECT_NE(waiting.wait_for(0s), std::future_status::ready);
  yours.countDown("b");
  EXPECT_TRUE(ending(waiting));
  EXPECT_TRUE(mine.wait(0ms));
  EXPECT_FALSE(latch("another").wait(0ms));
}

TEST_F(LatchTest, AParticipantThatCountsAgainAfterALostReplyCountsOnce) {
  CountDownLatch mine = latch();
  values->repliesToLose = 1;
  EXPECT_THROW(mine.countDown("a"), OutcomeUnknown);
  mine.countDown("a");
  mine.countDown("a");
  EXPECT_EQ(mine.missing(), (Names{"b", "c"}));
}

TEST_F(LatchTest, NamesItsParticipantsInAnyOrderAndEachOnce) {
  CountDownLatch mine(values, "import", {"c", "a", "b", "a"}, options());
  EXPECT_EQ(mine.missing(), (Names{"a", "b", "c"}));
  for (const char* const each : {"c", "a", "b"}) mine.countDown(each);
  EXPECT_TRUE(latch().wait(0ms));
}

TEST_F(LatchTest, IsAnotherOneInAnotherNamespace) {
  CountDownLatch mine = latch();
  for (const char* const each : {"a", "b", "c"}) mine.countDown(each);
  LatchOptions elsewhere = options();
  elsewhere.keyNamespace = "bakery";
  EXPECT_EQ(CountDownLatch(values, "import", {"a", "b", "c"}, elsewhere).missing().size(), 3U);
}

TEST_F(LatchTest, NothingIsInTheStoreAfterItsTime) {
  CountDownLatch mine = latch();
  for (const char* const each : {"a", "b", "c"}) mine.countDown(each);
  clock->advance(1h);
  EXPECT_EQ(mine.missing().size(), 3U);
}

TEST_F(LatchTest, AWaitEndsAtItsTimeOrWhenStopped) {
  CountDownLatch mine = latch();
  const Instant began = clock->now();
  auto waiting = std::async(std::launch::async, [&] { return mine.wait(10s); });
  EXPECT_FALSE(ending(waiting));
  EXPECT_GE(clock->now() - began, 10s);
  EXPECT_LE(values->reads, 100) << "it pauses between looks";
  std::stop_source stop;
  waiting = std::async(std::launch::async, [&] { return mine.wait(forever, stop.get_token()); });
  stop.request_stop();
  EXPECT_FALSE(waiting.get());
}

TEST_F(LatchTest, WhoHasCountedIsSeenThoughOthersCountWhenItsValueIsGone) {
  CountDownLatch mine = latch();
  mine.countDown("c");
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return latch().wait(3h, stop.get_token()); });
  ASSERT_TRUE(clock->awaitWaiters(1));
  mine.countDown("b");
  for (int steps = 0; steps < 7; ++steps) {
    const int before = values->reads;
    clock->advance(10min);
    while (values->reads == before) std::this_thread::yield();
    ASSERT_TRUE(clock->awaitWaiters(1));
  }
  EXPECT_EQ(mine.missing(), (Names{"a", "b", "c"}));
  mine.countDown("a");
  clock->advance(1min);
  EXPECT_EQ(waiting.wait_for(20s), std::future_status::ready);
  stop.request_stop();
  EXPECT_TRUE(waiting.get());
}

TEST_F(LatchTest, TheLastPauseEndsWithTheWait) {
  CountDownLatch mine = latch();
  auto waiting = std::async(std::launch::async, [&] { return mine.wait(2300ms); });
  const auto awaitPause = [&](int looks) {
    while (values->reads < looks) std::this_thread::yield();
    return clock->awaitWaiters(1);
  };
  constexpr int all = 3;  // at which it looks at first
  for (int looks = 1; looks <= 9; ++looks) {
    ASSERT_TRUE(awaitPause(all + looks));
    clock->advance(options().longestPause);
  }
  ASSERT_TRUE(awaitPause(all + 10));
  clock->advance(50ms);
  ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready) << "no time passes any more";
  EXPECT_FALSE(waiting.get());
}

TEST_F(LatchTest, AStoreThatTellsIsNotAskedAgainAndAgain) {
  const auto telling = std::make_shared<MemoryValues>(clock);
  const Names names{"a", "b"};
  CountDownLatch mine(telling, "import", names, options());
  auto waiting = std::async(std::launch::async, [&] { return mine.wait(); });
  CountDownLatch yours(telling, "import", names, options());
  for (const std::string& each : names) {
    EXPECT_TRUE(clock->awaitWaiters(1));
    yours.countDown(each);
  }
  ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready) << "no time passes";
  EXPECT_TRUE(waiting.get());
  std::stop_source stop;
  CountDownLatch another(telling, "another", names, options());
  waiting = std::async(std::launch::async, [&] { return another.wait(forever, stop.get_token()); });
  EXPECT_TRUE(clock->awaitWaiters(1));
  stop.request_stop();
  EXPECT_FALSE(waiting.get());
}

TEST_F(LatchTest, AWaitForManyAtASlowStoreEndsAtItsTimeOrWhenStopped) {
  Names many;
  for (int number = 0; number < 1000; ++number) many.push_back(std::to_string(number));
  CountDownLatch mine(values, "import", many, options());
  for (const std::string& each : many) mine.countDown(each);
  values->onRead = [&] { clock->advance(700ms); };
  const Instant began = clock->now();
  EXPECT_FALSE(mine.wait(1s));
  EXPECT_LE(values->latestDeadline.load() - began, 1s + options().operationTimeout);
  EXPECT_EQ(values->reads, 5) << "which take 3.5 s";
  std::stop_source stop;
  values->onRead = [&] { stop.request_stop(); };
  EXPECT_FALSE(mine.wait(forever, stop.get_token()));
  EXPECT_EQ(values->reads, 6);
  values->onRead = [] {};
  EXPECT_TRUE(mine.wait(0ms));
}

TEST_F(LatchTest, AStoreThatIsDownIsWaitedForUntilTheEnd) {
  CountDownLatch mine = latch();
  for (const char* const each : {"a", "b", "c"}) mine.countDown(each);
  values->down = true;
  EXPECT_THROW((void)mine.wait(0ms), StoreUnavailable);
  auto waiting = std::async(std::launch::async, [&] { return mine.wait(); });
  while (values->reads < 3) clock->advance(1ms);
  values->down = false;
  EXPECT_TRUE(ending(waiting));
}

TEST_F(LatchTest, AWaitForEverEndsWhenTheStoreHasBeenAwayForTooLong) {
  LatchOptions brief = options();
  brief.longestOutage = 1s;
  CountDownLatch mine(values, "import", {"a", "b", "c"}, brief);
  values->down = true;
  Instant began = clock->now();
  auto waiting = std::async(std::launch::async, [&] { return mine.wait(); });
  // It waits for the clock before time goes on.
  const auto pass = [&] {
    ASSERT_TRUE(clock->awaitWaiters(1));
    clock->advance(5ms);
  };
  while (clock->now() - began < 900ms) ASSERT_NO_FATAL_FAILURE(pass());
  ASSERT_TRUE(clock->awaitWaiters(1));
  values->down = false;
  const int reads = values->reads;
  while (values->reads < reads + 6) ASSERT_NO_FATAL_FAILURE(pass());  // it has an answer
  ASSERT_TRUE(clock->awaitWaiters(1));
  values->down = true;
  began = clock->now();
  EXPECT_THROW(ending(waiting), StoreUnavailable);
  EXPECT_GE(clock->now() - began, 500ms) << "counted anew";

  auto arriving = std::async(std::launch::async, [&] {
    return Barrier(values, "steps", {"a", "b"}, brief).arriveAndWait("a", 1);
  });
  EXPECT_THROW(ending(arriving), StoreUnavailable);
}

TEST_F(LatchTest, BadNamesAreRefusedBeforeAnythingIsSent) {
  EXPECT_THROW(CountDownLatch(values, "", {"a"}), std::invalid_argument);
  EXPECT_THROW(CountDownLatch(values, "n", {}), std::invalid_argument);
  EXPECT_THROW(CountDownLatch(values, "n", {"a/b"}), std::invalid_argument);
  EXPECT_THROW(CountDownLatch(nullptr, "n", {"a"}), std::invalid_argument);
  EXPECT_THROW(CountDownLatch(values, "n", {"a"}, {.keep = 1ms}), std::invalid_argument);
  EXPECT_THROW(CountDownLatch(values, "n", {"a"}, {.longestOutage = 25h, .environment = {}}),
               std::invalid_argument);
  EXPECT_THROW(Barrier(values, std::string(41, 'n'), {"a"}), std::invalid_argument);
  EXPECT_THROW(latch().countDown("d"), std::invalid_argument);
  EXPECT_THROW((void)latch().wait(-1ms), std::invalid_argument);
}

TEST_F(LatchTest, NobodyPassesABarrierBeforeAllHaveComeToTheSameRound) {
  constexpr std::uint64_t rounds = 5;
  values->repliesToLose = 2;
  std::array<std::atomic<std::uint64_t>, 3> reached{};
  std::atomic<int> early{0};
  const Names names{"0", "1", "2"};
  std::vector<std::future<bool>> workers;
  for (std::size_t worker = 0; worker < names.size(); ++worker) {
    workers.push_back(std::async(std::launch::async, [&, worker] {
      Barrier barrier(values, "steps", names, options());
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        reached[worker] = round;
        if (!barrier.arriveAndWait(names[worker], round)) return false;
        for (const auto& each : reached) early += each < round ? 1 : 0;
      }
      return true;
    }));
  }
  for (auto& each : workers) EXPECT_TRUE(ending(each));
  EXPECT_EQ(early, 0);
}

TEST_F(LatchTest, AWaitAtABarrierIsOneForCountingAndForTheOthers) {
  values->down = true;
  auto waiting = std::async(std::launch::async, [&] {
    return Barrier(values, "steps", {"a", "b"}, options()).arriveAndWait("a", 1, 10s);
  });
  ASSERT_TRUE(clock->awaitWaiters(1));
  clock->advance(9s);
  values->down = false;
  clock->advance(500ms);  // longer than a pause
  while (!values->get("shop:barrier/steps.1/a", Instant::max())) std::this_thread::yield();
  clock->advance(500ms);
  ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready) << "no time passes any more";
  EXPECT_FALSE(waiting.get());
}

TEST_F(LatchTest, CountingAtABarrierTakesFromTheTimeThatTheStoreHasToReply) {
  const auto timeout = options().operationTimeout;
  Barrier barrier(values, "steps", {"a", "b"}, options());
  for (const auto waitFor : {0ms, 1ms}) {
    values->reads = 0;
    values->onWrite = [&] { clock->advance(timeout - 1ms); };
    Instant began = clock->now();
    EXPECT_FALSE(barrier.arriveAndWait("a", 1, waitFor));
    EXPECT_EQ(values->latestDeadline.load() - began, waitFor + timeout);
    EXPECT_GT(values->reads, 0);

    values->reads = 0;
    values->onWrite = [&] { clock->advance(timeout + waitFor); };
    began = clock->now();
    EXPECT_FALSE(barrier.arriveAndWait("a", 1, waitFor));
    EXPECT_LE(values->latestDeadline.load() - began, waitFor + timeout);
    EXPECT_EQ(values->reads, 0) << "no time is left";
  }
}

TEST_F(LatchTest, ALatchIsNeverARoundOfABarrier) {
  CountDownLatch mine = latch("steps.3");
  for (const char* const each : {"a", "b", "c"}) mine.countDown(each);
  EXPECT_FALSE(Barrier(values, "steps", {"a", "b", "c"}, options()).arriveAndWait("a", 3, 0ms));
}

TEST_F(LatchTest, WhoGaveUpWaitingAtABarrierStillCountsAndMayComeBack) {
  Barrier barrier(values, "steps", {"a", "b"}, options());
  EXPECT_FALSE(barrier.arriveAndWait("a", 1, 0ms));
  EXPECT_TRUE(barrier.arriveAndWait("b", 1, 0ms));
  EXPECT_TRUE(barrier.arriveAndWait("a", 1, 0ms)) << "as after a restart";
  EXPECT_FALSE(barrier.arriveAndWait("a", 2, 0ms));
}

}  // namespace
}  // namespace lockkeeper::test

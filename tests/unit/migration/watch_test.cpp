#include <array>
#include <atomic>
#include <utility>

#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

/// One member watches for all.
class OneWatches : public Fleet {
 protected:
  OneWatches() { options.observation = 0s; }

  /// Counts how often a process reads all members.
  static std::shared_ptr<std::atomic<int>> readsOf(const Process& process) {
    auto reads = std::make_shared<std::atomic<int>>(0);
    process.records->afterRead = [reads] { ++*reads; };
    return reads;
  }
};

TEST_F(OneWatches, TheOthersReadNoRecordsOfMembers) {
  decree("legacy");
  const Process first = join("legacy", "a:1");
  const Process second = join("legacy", "b:1");
  const Process third = join("legacy", "c:1");
  const auto reads = std::array{readsOf(second), readsOf(third)};
  advance("modern");
  pass(options.lease + options.maxTtl + 2s);
  EXPECT_EQ(stores(third), "new");
  EXPECT_EQ(*reads[0] + *reads[1], 0);
}

TEST_F(OneWatches, AnotherTakesItsPlaceWhenItHasLeft) {
  decree("legacy");
  Process first = join("legacy", "a:1");
  const Process second = join("legacy", "b:1");
  pass(options.lease + options.maxTtl);
  end(first);
  advance("modern");
  pass(options.lease + options.maxTtl - 2s);
  EXPECT_EQ(stores(second), "old+new") << "it has not watched for long enough";
  pass(5s);
  EXPECT_EQ(stores(second), "new");
}

TEST_F(OneWatches, AnotherTakesItsPlaceWhenItFallsSilent) {
  decree("legacy");
  const Process first = join("legacy", "a:1");
  const Process second = join("legacy", "b:1");
  const Process third = join("legacy", "c:1");
  first.records->down = true;
  advance("modern");
  pass(options.lease + options.maxTtl);
  EXPECT_EQ(stores(second), "old+new");
  pass(2 * options.lease + 2s);  // until it is noticed, and until one that is young itself dares
  EXPECT_EQ(stores(second), "new");
  first.records->down = false;
  pass(2s);
  EXPECT_EQ(stores(first), "new");
}

TEST_F(OneWatches, WhoHasBeenHereForLongComesFirst) {
  decree("legacy");
  Process first = join("legacy", "a:1");
  const Process old = join("legacy", "b:1");
  pass(options.lease + options.maxTtl);
  const Process young = join("legacy", "c:1");
  const auto reads = readsOf(young);
  end(first);
  pass(20s);
  EXPECT_EQ(*reads, 0);
  advance("modern");
  pass(options.lease + options.maxTtl + 2s);
  EXPECT_EQ(stores(old), "new");
  EXPECT_EQ(*reads, 0);
}

TEST_F(OneWatches, TwoWhoWatchAtOnceDoNoHarmAndOneOfThemGivesWay) {
  decree("legacy");
  const Process first = join("legacy", "a:1");
  const Process second = join("legacy", "b:1");
  const Claimant who{"k", "b:1"};
  ASSERT_TRUE(takes(second, who));
  advance("modern");
  for (int i = 0; i < 8; ++i) {
    pass(10s);
    stateStore.watch("somebody else", 1ms, soon());  // a clock that has jumped, or one that came in between
    ASSERT_EQ(renew(second, who), RenewOutcome::renewed);
    ASSERT_FALSE(takes(first, {"k", "a:1"}));
  }
  EXPECT_EQ(second.driver->release(who.claim(), soon()), ReleaseOutcome::released);
  pass(options.lease + options.maxTtl + 5s);
  EXPECT_EQ(stores(first), "new");
}

// While the one that watches stands still, the clock of the state store jumps, too.
TEST_F(OneWatches, APauseAfterTheStateWasReadMakesNobodySilent) {
  decree("legacy");
  const Process first = join("legacy", "a:1");
  const Process holder = join("legacy", "b:1");
  const Claimant who{"k", "b:1"};
  ASSERT_TRUE(takes(holder, who));
  advance("modern");
  for (int i = 0; i < 5; ++i) {
    pass(9s);
    ASSERT_EQ(renew(holder, who), RenewOutcome::renewed);
  }
  holder.records->down = true;  // for two heartbeats
  pass(1s);
  first.records->afterRead = [&, paused = false]() mutable {
    if (std::exchange(paused, true)) return;
    holder.records->down = false;
    for (int i = 0; i < 6; ++i) {
      stateClock->advance(9s);
      clock->advance(9s);
      EXPECT_TRUE(clock->awaitWaiters(1));
      EXPECT_EQ(renew(holder, who), RenewOutcome::renewed);
    }
    holder.records->down = true;  // for less than its lease
    stateClock->advance(6min);
  };
  clock->advance(1s);
  ASSERT_TRUE(clock->awaitWaiters(hearts));
  EXPECT_EQ(renew(holder, who), RenewOutcome::renewed);
  EXPECT_FALSE(takes(first, {"k", "a:1"}));
}

}  // namespace
}  // namespace lockkeeper::migration

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

/// Somebody who is no member is met in the old store just before the call of the last step that is named.
class OutsiderMetLate : public Fleet, public ::testing::WithParamInterface<std::string_view> {
 protected:
  /// Takes a key of the old store, where the watcher has looked already, and is seen by another member.
  void reach(std::string_view call) {
    if (call == "write") looked_ = false;
    if (call != GetParam() || !looked_ || met) return;
    met = true;
    EXPECT_TRUE(std::holds_alternative<Granted>(oldStore->acquire({outsider.claim(), 10min, soon()})));
    stateStore.sighted(outsider.key, true, soon());
  }
  Process startWatcher() {
    Process watcher = start("both", "a:1");
    watcher.records->before = [this](std::string_view call) { reach(call); };
    const auto store = std::make_shared<LookedThrough>(oldStore);
    store->before = [this] { looked_ = true; };
    watcher.driver = std::make_shared<MigratingDriver>(
        store, newStore, watcher.records, options,
        Environment{clock, std::make_shared<FakeRandom>(77), watcher.notes});
    ++hearts;
    return watcher;
  }

  const Claimant outsider{"k"};
  std::atomic<bool> met{false};

 private:
  bool looked_ = false;  // in this heartbeat
};

TEST_P(OutsiderMetLate, KeepsItsKeyInBothStores) {
  decree("both");
  const Process watcher = startWatcher();
  EXPECT_EQ(stores(watcher), "old+new");
  stateStore.sighted("another", true, soon());
  advance("modern");
  pass(options.observation + 5s);
  EXPECT_TRUE(met);
  EXPECT_EQ(stateStore.read(soon()).current.text(), "* = both");
  EXPECT_FALSE(takes(watcher, {outsider.key, "a:1"})) << "two holders";
  oldStore->release(outsider.claim(), soon());
  pass(options.observation + 5s);
  EXPECT_EQ(stores(watcher), "new");
}

INSTANTIATE_TEST_SUITE_P(Before, OutsiderMetLate, ::testing::Values("read", "replace"),
                         [](const auto& of) { return std::string(of.param); });

/// One member watches for all.
class OneWatches : public Fleet {
 protected:
  OneWatches() { options.observation = 0s; }

  /// For FaultyRecords::before.
  static std::function<void(std::string_view call)> failingReads() {
    return [](std::string_view call) {
      if (call == "read") throw StoreUnavailable("no reading, says the test");
    };
  }

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

TEST_F(OneWatches, WhoCannotReadDoesNotTakeTheRole) {
  decree("legacy");
  Process first = start("legacy", "a:1");
  first.records->before = failingReads();
  ++hearts;
  ASSERT_EQ(stores(first), "old");
  ASSERT_TRUE(clock->awaitWaiters(hearts));
  const Process second = join("legacy", "b:1");
  advance("both");
  pass(options.lease + options.maxTtl + 5s);
  EXPECT_EQ(stateStore.read(soon()).current.text(), "* = both");
  EXPECT_TRUE(first.notes->mention("takes no step")) << first.notes->all();
}

TEST_F(OneWatches, WhoCannotReadAnyMoreGivesTheRoleAway) {
  decree("legacy");
  const Process first = join("legacy", "a:1");
  const Process second = join("legacy", "b:1");
  first.records->before = failingReads();
  advance("modern");
  pass(3 * options.lease + options.lease + options.maxTtl + 5s);
  EXPECT_EQ(stores(second), "new");
}

TEST_F(OneWatches, ItBeginsAnewWhenItHasNotReadAllForALease) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  const auto fails = std::make_shared<std::atomic<bool>>(false);
  process.records->before = [fails, fail = failingReads()](std::string_view call) {
    if (*fails) fail(call);
  };
  advance("modern");
  pass(options.lease + options.maxTtl - 5s);
  *fails = true;
  pass(options.lease - 1s);
  *fails = false;
  pass(options.lease + options.maxTtl - 2s);
  EXPECT_EQ(stores(process), "old+new");
  pass(5s);
  EXPECT_EQ(stores(process), "new");
}

TEST_F(OneWatches, AStateWithoutItsOwnRecordPermitsNoStep) {
  decree("legacy");
  advance("both");
  const Process process = start("legacy", "a:1");
  process.records->before = [this](std::string_view call) {
    if (call != "read") return;
    for (const SharedRecord& record : records->read(options.name, soon())) {
      if (record.name.starts_with("member ")) records->write(options.name, record.name, "", 1ms, {}, soon());
    }
    stateClock->advance(2ms);
  };
  ++hearts;
  ASSERT_TRUE(takes(process, {"k", "a:1"}));
  ASSERT_TRUE(clock->awaitWaiters(hearts));
  pass(3s);
  EXPECT_EQ(stateStore.read(soon()).current.text(), "* = legacy");
}

TEST_F(OneWatches, ADeadOneLosesTheRoleAlthoughTheStoresClockIsSetBack) {
  decree("legacy");
  const Process first = join("legacy", "a:1");
  const Process second = join("legacy", "b:1");
  pass(2s);
  first.records->down = true;
  stateClock->advance(-1h);
  advance("modern");
  pass(3 * options.lease + options.lease + options.maxTtl + 5s);
  EXPECT_EQ(stores(second), "new");
}

TEST_F(OneWatches, CommandsThatFollowEachOtherDoNotKeepTheRole) {
  decree("legacy");
  Process command = join("legacy", "command:0");
  const Process process = join("legacy", "a:1");
  pass(options.lease + options.maxTtl);
  advance("modern");
  for (int i = 1; i <= 30; ++i) {
    end(command);
    command = join("legacy", "command:" + std::to_string(i));
    pass(2s);
  }
  EXPECT_EQ(stores(process), "new");
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

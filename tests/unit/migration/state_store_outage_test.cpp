#include <functional>
#include <future>

#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

class StateStoreOutage : public Fleet {
 protected:
  /// A lock that the old store grants only after `meanwhile` is given back.
  void expectGivenBack(const std::function<void(const Process& process)>& meanwhile) {
    decree("legacy");
    const Process process = join("legacy", "a:1");
    process.oldStore->hang(Call::acquire);
    const Claimant late{"k", "a:1"};
    auto result = std::async(std::launch::async, [&] { return takes(process, late); });
    process.oldStore->awaitHanging();
    meanwhile(process);
    process.oldStore->resume();
    EXPECT_THROW(result.get(), StoreUnavailable);
    EXPECT_EQ(held("k"), "");
  }

  /// Ends a process that is kept from leaving the migration.
  void expectToEndInASecond(Process& process) {
    const Instant until = clock->now() + 1s;
    auto ended = std::async(std::launch::async, [&] { end(process); });
    const bool bounded = clock->awaitWakeUpAt(until);
    clock->advance(1s);
    if (!bounded || ended.wait_for(20s) != std::future_status::ready) {
      process.records->stalled.unlock();
      ended.get();
      process.records->stalled.lock();
      FAIL() << "it waits as long as the store hangs";
    }
  }
};

TEST_F(StateStoreOutage, AProcessOutOfTouchTakesItsLocksInBothStores) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  process.records->down = true;
  pass(options.lease - 2s);
  EXPECT_EQ(stores(process), "old") << "a short outage changes nothing";
  pass(3s);
  EXPECT_EQ(stores(process), "old+new");
  EXPECT_TRUE(process.notes->mention("the migration's state is out of reach")) << process.notes->all();
  process.records->down = false;
  pass(1s);
  EXPECT_EQ(stores(process), "old");
}

TEST_F(StateStoreOutage, AProcessThatHasNeverReachedTheStateStoreTakesItsLocksInBothStores) {
  decree("legacy");
  const Process process = start("legacy", "a:1");
  process.records->down = true;
  EXPECT_EQ(stores(process), "old+new");
}

TEST_F(StateStoreOutage, AStoreThatThrowsWhatIsNotAnErrorOfOursIsOutOfReach) {
  decree("legacy");
  Process process = join("legacy", "a:1");
  process.records->broken = true;
  pass(options.lease + 1s);
  EXPECT_EQ(stores(process), "old+new");
  EXPECT_TRUE(process.notes->mention("broken, says the test")) << process.notes->all();
  end(process);
}

TEST_F(StateStoreOutage, TheLeaseCountsFromWhenItsHeartbeatWasSent) {
  decree("legacy");
  std::atomic<int> beats{0};
  const Process process = join("legacy", "a:1");
  process.records->before = [&](std::string_view call) {
    if (call != "write") return;
    if (++beats > 1) throw StoreUnavailable("after the slow heartbeat, says the test");
    clock->advance(options.lease - 2s);
  };
  pass(1s);
  EXPECT_EQ(stores(process), "old");
  pass(2s);
  EXPECT_EQ(stores(process), "old+new");
}

TEST_F(StateStoreOutage, AnAcquireWaitsForAStateStoreThatHangsForHalfOfItsTimeOnly) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  std::unique_lock hanging(process.records->stalled);
  const Claimant who{"k", "another:2"};
  const Instant deadline = soon();
  auto taken = std::async(std::launch::async, [&] {
    return std::holds_alternative<Granted>(process.driver->acquire({who.claim(), ttl, deadline}));
  });
  const Instant half = clock->now() + (deadline - clock->now()) / 2;
  EXPECT_TRUE(clock->awaitWakeUpAt(half));
  clock->advance(half - clock->now());
  EXPECT_EQ(taken.wait_for(20s), std::future_status::ready);
  hanging.unlock();
  EXPECT_TRUE(taken.get());
}

TEST_F(StateStoreOutage, LeavingWaitsForItsRecordThatHangsForASecondOnly) {
  decree("both");
  Process process = join("both", "a:1");
  std::unique_lock hanging(process.records->stalled);
  clock->advance(500ms);  // so that the next heartbeat is due at another time
  expectToEndInASecond(process);
  ASSERT_EQ(stateStore.read(soon()).members.size(), 1U);
  hanging.unlock();
  process.records->departures.wait(0);
  EXPECT_TRUE(stateStore.read(soon()).members.empty()) << "what is left behind still leaves the migration";
}

TEST_F(StateStoreOutage, LeavingWaitsForAHeartbeatThatHangsForASecondOnlyAndTellsNothingAfterwards) {
  decree("both");
  Process process = join("both", "a:1");
  std::unique_lock hanging(process.records->stalled);
  const int before = process.records->heartbeats;
  clock->advance(1s);
  process.records->heartbeats.wait(before);
  expectToEndInASecond(process);
  clock->advance(options.lease);
  process.records->down = true;
  hanging.unlock();
  process.records->departures.wait(0);
  EXPECT_EQ(process.notes->all(), "");
}

TEST_F(StateStoreOutage, ALockInOneStoreIsNotRenewedOutOfTouch) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  const Claimant who{"k", "a:1"};
  ASSERT_TRUE(takes(process, who));
  process.records->down = true;
  pass(options.lease - 2s);
  EXPECT_EQ(renew(process, who), RenewOutcome::renewed);
  pass(3s);
  EXPECT_EQ(renew(process, who), RenewOutcome::unavailable);
  EXPECT_EQ(process.driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(StateStoreOutage, ARenewalThatWasSentAfterTheLeaseDoesNotCount) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  const Claimant who{"k", "a:1"};
  ASSERT_TRUE(takes(process, who));
  process.oldStore->hang(Call::renew);
  auto outcome = std::async(std::launch::async, [&] { return renew(process, who); });
  process.oldStore->awaitHanging();
  // As in a process that is stopped between its decision and its request.
  process.records->down = true;
  pass(options.lease + 1s);
  process.oldStore->resume();
  EXPECT_EQ(outcome.get(), RenewOutcome::unknown);
}

TEST_F(StateStoreOutage, ALockInBothStoresIsRenewedOutOfTouch) {
  decree("both");
  const Process process = join("both", "a:1");
  const Claimant who{"k", "a:1"};
  ASSERT_TRUE(takes(process, who));
  process.records->down = true;
  pass(options.lease + 5s);
  EXPECT_EQ(renew(process, who), RenewOutcome::renewed);
}

TEST_F(StateStoreOutage, AGrantThatWasAskedForAfterTheLeaseIsGivenBack) {
  // As in a process that is stopped between its decision and its request.
  expectGivenBack([&](const Process& process) {
    process.records->down = true;
    pass(options.lease + 1s);
  });
}

TEST_F(StateStoreOutage, AGrantThatWasDecidedOnInAnEarlierLeaseIsGivenBack) {
  expectGivenBack([&](const Process& process) {
    process.records->down = true;
    pass(options.lease + 1s);
    process.records->down = false;
    pass(2s);
  });
}

TEST_F(StateStoreOutage, AStateThatWasLostIsWrittenBackByTheSurvivors) {
  decree("modern");
  const Process survivor = join("legacy", "a:1");
  EXPECT_EQ(stores(survivor), "new");
  for (const SharedRecord& record : records->read(options.name, soon())) {
    records->write(options.name, record.name, "", 1ms, {}, soon());
  }
  pass(1s);
  EXPECT_EQ(stores(survivor), "old+new");
  const Process newcomer = join("legacy", "b:1");
  EXPECT_EQ(stores(newcomer), "old+new");
  pass(options.observation + 5s);
  EXPECT_EQ(stores(survivor), "new") << "what the operator wrote counts, not the configuration";
  EXPECT_EQ(stores(newcomer), "new");
  EXPECT_TRUE(survivor.notes->mention("state was lost")) << survivor.notes->all();
}

TEST_F(StateStoreOutage, AStateThatHasFallenBackToOlderRulesIsNotFollowed) {
  decree("legacy");
  const MigrationState before = stateStore.read(soon());
  decree("modern");
  const Process process = join("modern", "a:1");
  const MigrationState after = stateStore.read(soon());
  // As after a failover that has lost the last writes.
  ASSERT_TRUE(stateStore.change(after, before.version, before.current, before.target, soon()));
  pass(1s);
  EXPECT_EQ(stores(process), "old+new");
  EXPECT_GT(stateStore.read(soon()).version, after.version);
  EXPECT_TRUE(process.notes->mention("state was lost")) << process.notes->all();
}

TEST_F(StateStoreOutage, ARecordThatCannotBeReadIsNotTakenForConsent) {
  options.observation = 0s;
  decree("legacy");
  const Process process = join("legacy", "a:1");
  advance("modern");
  records->write(options.name, "member of another kind", "hello", std::nullopt, {}, soon());
  pass(options.lease + options.maxTtl + 5s);
  EXPECT_EQ(stores(process), "old+new");
  EXPECT_TRUE(process.notes->mention("takes no step")) << process.notes->all();
}

}  // namespace
}  // namespace lockkeeper::migration

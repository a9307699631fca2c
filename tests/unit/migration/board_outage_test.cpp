#include <future>

#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

using BoardOutage = Fleet;

TEST_F(BoardOutage, AProcessOutOfTouchTakesItsLocksInBothStores) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  process.board->down = true;
  pass(options.lease - 2s);
  EXPECT_EQ(stores(process), "old") << "a short outage changes nothing";
  pass(3s);
  EXPECT_EQ(stores(process), "old+new");
  EXPECT_TRUE(process.notes->mention("the board is out of reach")) << process.notes->all();
  process.board->down = false;
  pass(1s);
  EXPECT_EQ(stores(process), "old");
}

TEST_F(BoardOutage, AProcessThatHasNeverReachedTheBoardTakesItsLocksInBothStores) {
  decree("legacy");
  const Process process = start("legacy", "a:1");
  process.board->down = true;
  EXPECT_EQ(stores(process), "old+new");
}

TEST_F(BoardOutage, AnAcquireWaitsForABoardThatHangsUntilItsDeadlineOnly) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  std::unique_lock hanging(process.board->stalled);
  const Claimant who{"k", "another:2"};
  const Instant deadline = soon();
  auto taken = std::async(std::launch::async, [&] { process.driver->acquire({who.claim(), ttl, deadline}); });
  EXPECT_TRUE(clock->awaitWakeUpAt(deadline));
  clock->advance(deadline - clock->now());
  EXPECT_EQ(taken.wait_for(20s), std::future_status::ready);
  hanging.unlock();
  taken.get();
}

TEST_F(BoardOutage, ALockInOneStoreIsNotRenewedOutOfTouch) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  const Claimant who{"k", "a:1"};
  ASSERT_TRUE(takes(process, who));
  process.board->down = true;
  pass(options.lease - 2s);
  EXPECT_EQ(renew(process, who), RenewOutcome::renewed);
  pass(3s);
  EXPECT_EQ(renew(process, who), RenewOutcome::unavailable);
  EXPECT_EQ(process.driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(BoardOutage, ARenewalThatWasSentAfterTheLeaseDoesNotCount) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  const Claimant who{"k", "a:1"};
  ASSERT_TRUE(takes(process, who));
  process.oldStore->hang(Call::renew);
  auto outcome = std::async(std::launch::async, [&] { return renew(process, who); });
  process.oldStore->awaitHanging();
  // As in a process that is stopped between its decision and its request.
  process.board->down = true;
  pass(options.lease + 1s);
  process.oldStore->resume();
  EXPECT_EQ(outcome.get(), RenewOutcome::unknown);
}

TEST_F(BoardOutage, ALockInBothStoresIsRenewedOutOfTouch) {
  decree("both");
  const Process process = join("both", "a:1");
  const Claimant who{"k", "a:1"};
  ASSERT_TRUE(takes(process, who));
  process.board->down = true;
  pass(options.lease + 5s);
  EXPECT_EQ(renew(process, who), RenewOutcome::renewed);
}

TEST_F(BoardOutage, AGrantThatWasAskedForAfterTheLeaseIsGivenBack) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  process.oldStore->hang(Call::acquire);
  const Claimant late{"k", "a:1"};
  auto result = std::async(std::launch::async, [&] { return takes(process, late); });
  process.oldStore->awaitHanging();
  // As in a process that is stopped between its decision and its request.
  process.board->down = true;
  pass(options.lease + 1s);
  process.oldStore->resume();
  EXPECT_THROW(result.get(), StoreUnavailable);
  EXPECT_EQ(held("k"), "");
}

TEST_F(BoardOutage, AGrantThatWasDecidedOnInAnEarlierLeaseIsGivenBack) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  process.oldStore->hang(Call::acquire);
  const Claimant late{"k", "a:1"};
  auto result = std::async(std::launch::async, [&] { return takes(process, late); });
  process.oldStore->awaitHanging();
  process.board->down = true;
  pass(options.lease + 1s);
  process.board->down = false;
  pass(2s);
  process.oldStore->resume();
  EXPECT_THROW(result.get(), StoreUnavailable);
  EXPECT_EQ(held("k"), "");
}

TEST_F(BoardOutage, ABoardThatHasLostItsMemoryGetsItBackFromTheSurvivors) {
  decree("modern");
  const Process survivor = join("legacy", "a:1");
  EXPECT_EQ(stores(survivor), "new");
  for (const SharedRecord& notice : records->read(options.name, soon())) {
    records->remove(options.name, notice.name, soon());
  }
  pass(1s);
  EXPECT_EQ(stores(survivor), "old+new");
  const Process newcomer = join("legacy", "b:1");
  EXPECT_EQ(stores(newcomer), "old+new");
  pass(options.observation + 5s);
  EXPECT_EQ(stores(survivor), "new") << "what the operator wrote counts, not the configuration";
  EXPECT_EQ(stores(newcomer), "new");
  EXPECT_TRUE(survivor.notes->mention("has lost its memory")) << survivor.notes->all();
}

TEST_F(BoardOutage, ABoardThatHasFallenBackToOlderRulesIsNotFollowed) {
  decree("legacy");
  const BoardState before = board.look(soon());
  decree("modern");
  const Process process = join("modern", "a:1");
  const BoardState after = board.look(soon());
  // As after a failover that has lost the last writes.
  ASSERT_TRUE(board.change(after, before.version, before.settled, before.target, soon()));
  pass(1s);
  EXPECT_EQ(stores(process), "old+new");
  EXPECT_GT(board.look(soon()).version, after.version);
  EXPECT_TRUE(process.notes->mention("has lost its memory")) << process.notes->all();
}

TEST_F(BoardOutage, ANoticeThatCannotBeReadIsNotTakenForConsent) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  records->write(options.name, "member of another kind", "hello", std::nullopt, soon());
  pass(options.lease + 1s);
  EXPECT_EQ(stores(process), "old+new");
}

}  // namespace
}  // namespace lockkeeper::migration

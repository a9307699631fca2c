#include <future>
#include <mutex>
#include <optional>

#include "lockkeeper/mutex.h"
#include "manager_fixture.h"
#include "posting_driver.h"

namespace lockkeeper::test {
namespace {

class PostedReleaseTest : public ManagerFixture {
 protected:
  const Instant start = clock->now();
  std::shared_ptr<PostingDriver> driver = std::make_shared<PostingDriver>(store);
  LockManager posting{driver, options(seed + 2)};

  bool heard(const std::string& event) const {
    const auto all = listener->heard();
    return std::ranges::find(all, event) != all.end();
  }
};

TEST_F(PostedReleaseTest, TheEndOfALockWaitsForNoReply) {
  std::optional<Lock> held = posting.lock("order");
  held.reset();
  EXPECT_EQ(driver->outstanding(), 1U);
  EXPECT_FALSE(heard("released order")) << "nobody knows yet";
  EXPECT_TRUE(other.tryLock("order"));
  driver->deliver();
  EXPECT_TRUE(heard("released order"));
}

TEST_F(PostedReleaseTest, SoDoAssignmentAndTheStandardsUnlock) {
  Lock held = posting.lock("first");
  held = posting.lock("second");
  EXPECT_EQ(driver->outstanding(), 1U);
  Mutex mutex(posting, "third");
  mutex.lock();
  mutex.unlock();
  EXPECT_EQ(driver->outstanding(), 2U);
  driver->deliver();
  EXPECT_TRUE(heard("released first"));
  EXPECT_TRUE(heard("released third"));
  EXPECT_FALSE(heard("released second"));
}

TEST_F(PostedReleaseTest, WhoAsksForTheResultWaitsForIt) {
  EXPECT_EQ(posting.lock("order").release(), ReleaseResult::released);
  EXPECT_EQ(driver->outstanding(), 0U);
  EXPECT_TRUE(heard("released order"));
}

TEST_F(PostedReleaseTest, WhatTheDriverDoesNotTakeIsWaitedFor) {
  driver->refusing = true;
  { const Lock held = posting.lock("order"); }
  EXPECT_TRUE(heard("released order"));
  EXPECT_TRUE(other.tryLock("order"));
}

TEST_F(PostedReleaseTest, TheNextCallerOfTheProcessNeedNotWaitForTheReply) {
  std::optional<Lock> held = posting.lock("order");
  auto next = std::async(std::launch::async, [&] { return posting.lock("order"); });
  ASSERT_TRUE(clock->awaitWaiters(managerThreads + 1));
  held.reset();
  EXPECT_TRUE(next.get().valid());
  EXPECT_GE(driver->outstanding(), 1U);
}

TEST_F(PostedReleaseTest, AReplyThatNobodyElseReadsIsReadAfterTenMilliseconds) {
  { const Lock held = posting.lock("order"); }
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 10ms));
  EXPECT_EQ(driver->awaited(), 0);
  clock->advance(10ms);
  listener->await("released order");
  EXPECT_EQ(driver->awaited(), 1);
  EXPECT_EQ(driver->awaitDeadline(), start + 10ms + 2s);
  // And so is the next one.
  { const Lock held = posting.lock("next"); }
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 20ms));
  clock->advance(10ms);
  listener->await("released next");
}

TEST_F(PostedReleaseTest, RepliesThatTrafficHasReadAreNotAskedFor) {
  { const Lock held = posting.lock("order"); }
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 10ms));
  driver->deliver();
  { const Lock held = posting.lock("young"); }
  clock->advance(10ms);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 20ms)) << "the young one has as long again";
  EXPECT_EQ(driver->awaited(), 0);
  clock->advance(10ms);
  driver->awaitAwaited(1);
}

TEST_F(PostedReleaseTest, ALossThatItFindsIsToldAsOne) {
  std::optional<Lock> held = posting.lock("order");
  store->breakLock("order", {});
  held.reset();
  driver->deliver();
  EXPECT_TRUE(heard("lost: not the owner any more order")) << ::testing::PrintToString(listener->heard());
  EXPECT_FALSE(heard("released order"));
}

TEST_F(PostedReleaseTest, WhatFailsIsToldAndTriedAgainInTheBackground) {
  driver->failure = ErrorCode::outcomeUnknown;
  std::vector<std::optional<ErrorCode>> errors;
  LockManager watched(driver, heardBy(seed + 3, [&](const Event& event) {
                        if (event.kind == EventKind::released) errors.push_back(event.error);
                      }));
  { const Lock held = watched.lock("order"); }
  driver->deliver();
  driver->awaitReleased(1);
  EXPECT_TRUE(heard("failed: outcome unknown order")) << ::testing::PrintToString(listener->heard());
  EXPECT_EQ(errors, std::vector<std::optional<ErrorCode>>{ErrorCode::outcomeUnknown});
}

TEST_F(PostedReleaseTest, TheEndOfTheManagerWaitsForTheOutcomes) {
  std::optional<LockManager> brief(std::in_place, driver, options(seed + 3));
  for (int i = 0; i < 100; ++i) const Lock held = brief->lock("order/" + std::to_string(i));
  driver->fallSilent();
  auto gone = std::async(std::launch::async, [&] { brief.reset(); });
  driver->awaitAwaited(1);
  EXPECT_FALSE(heard("released order/0"));
  driver->speak();
  gone.get();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(heard("released order/" + std::to_string(i)));
}

TEST_F(PostedReleaseTest, SoDoesTheEndOfACallThatOutlivesItsManager) {
  const Lock busy = other.lock("busy");
  std::optional<LockManager> brief;
  brief.emplace(driver, heardBy(seed + 3, [&](const Event& event) {
                  if (event.kind == EventKind::timedOut) brief.reset();
                }));
  { const Lock held = brief->lock("order"); }
  EXPECT_FALSE(heard("released order"));
  EXPECT_FALSE(brief->tryLock("busy"));
  EXPECT_FALSE(brief);
  EXPECT_TRUE(heard("released order"));
}

TEST_F(PostedReleaseTest, ForOneOperationAtMostAndTellsNothingLater) {
  std::optional<LockManager> brief(std::in_place, driver, options(seed + 3));
  { const Lock held = brief->lock("order"); }
  driver->fallSilent();
  auto gone = std::async(std::launch::async, [&] { brief.reset(); });
  driver->awaitAwaited(1);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 2s));
  clock->advance(2s);
  gone.get();
  driver->speak();
  driver->deliver();
  EXPECT_FALSE(heard("released order"));
}

TEST_F(PostedReleaseTest, AReplyThatComesAfterTheManagerTouchesNothingOfIt) {
  std::optional<LockManager> brief(std::in_place, driver, options(seed + 3));
  std::optional<Lock> held = brief->lock("order");
  { const Lock first = brief->lock("first"); }
  driver->fallSilent();
  auto gone = std::async(std::launch::async, [&] {
    brief.reset();
    held.reset();  // the last of the manager
  });
  driver->awaitAwaited(1);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 2s));
  clock->advance(2s);
  gone.get();
  driver->deliver();
  driver->speak();
  EXPECT_FALSE(heard("released order"));
  EXPECT_TRUE(other.tryLock("order"));
}

TEST_F(PostedReleaseTest, WhatIsLeftBehindIsPostedWhenTheManagerEnds) {
  const auto behind = std::make_shared<PostingDriver>(network);
  std::optional<LockManager> brief(std::in_place, behind, options(seed + 3));
  network->fail(Call::acquire, {Fault::replyLost, Fault::requestLost});
  network->fail(Call::release, {Fault::unavailable});
  EXPECT_THROW((void)brief->tryLock("order", {.ttl = 1h}), OutcomeUnknown);
  network->awaitCalls(Call::release, 1);
  EXPECT_TRUE(other.isLocked("order"));
  brief.reset();
  EXPECT_FALSE(other.isLocked("order"));
}

class LateReleaseTest : public PostedReleaseTest {
 protected:
  const LockOptions brief{.ttl = 1s, .renew = Renew::manual};
  const std::string loss = "lost: not the owner any more order";
};

// The lease has ended by itself before the release came to the store.
TEST_F(LateReleaseTest, ThatWasPostedIsNoLoss) {
  std::optional<Lock> held = posting.lock("order", brief);
  store->breakLock("order", {});
  driver->fallSilent();  // only deliver() reads replies
  held.reset();
  clock->advance(1s);
  driver->deliver();
  EXPECT_TRUE(heard("released order"));
  EXPECT_FALSE(heard(loss));
  driver->speak();
}

TEST_F(LateReleaseTest, ThatIsWaitedForIsNoLoss) {
  Lock held = manager.lock("order", brief);
  network->onReleased = [&](std::string_view) { clock->advance(1s); };
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_TRUE(heard("released order"));
  EXPECT_FALSE(heard(loss));
}

TEST_F(LateReleaseTest, OfALockThatIsHeldForSoLongIsNoLoss) {
  Lock held = manager.lock("order", brief);
  network->hang(Call::renew);
  auto released = std::async(std::launch::async, [&] { return held.releaseHeldFor(300ms); });
  network->awaitHanging();
  clock->advance(1s);
  network->resume();
  EXPECT_EQ(released.get(), ReleaseResult::released);
  EXPECT_FALSE(heard(loss));
}

TEST_F(LateReleaseTest, OfALockThatWasToBeHeldForLongerSaysThatItWasNot) {
  Lock held = manager.lock("order", brief);
  network->hang(Call::renew);
  auto released = std::async(std::launch::async, [&] { return held.releaseHeldFor(5s); });
  network->awaitHanging();
  clock->advance(1s);
  network->resume();
  EXPECT_EQ(released.get(), ReleaseResult::notOwner);
  EXPECT_FALSE(heard(loss)) << "it was valid when it was released";
}

}  // namespace
}  // namespace lockkeeper::test

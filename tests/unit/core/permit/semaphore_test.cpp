#include "lockkeeper/permit/semaphore.h"

#include <thread>

#include "decorators.h"
#include "lock/manager_fixture.h"

namespace lockkeeper::test {
namespace {

class SemaphoreTest : public ManagerFixture {
 protected:
  Semaphore exports{manager, "export", 3};
  Semaphore elsewhere{other, "export", 3};
};

TEST_F(SemaphoreTest, GivesSoManyPermitsAmongAllProcesses) {
  const auto one = exports.acquire();
  auto two = elsewhere.tryAcquire(2);
  ASSERT_TRUE(two);
  EXPECT_FALSE(exports.tryAcquire());
  EXPECT_FALSE(elsewhere.tryAcquire());
  two->release();
  EXPECT_TRUE(exports.tryAcquire(2));
  EXPECT_FALSE(exports.tryAcquire(3)) << "one is held";
}

TEST_F(SemaphoreTest, WhoWaitsIsServedByARelease) {
  auto all = elsewhere.acquire(3);
  LockManager direct(store, options(seed + 2));
  Semaphore queued(direct, "export", 3);
  auto waiting = std::async(std::launch::async, [&] { return queued.acquire(2); });
  auto another = std::async(std::launch::async, [&] { return queued.tryAcquire(1, 1h); });
  // Both of one process wait in the store, beside the threads of both managers.
  ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + 2));
  all.release();
  EXPECT_TRUE(waiting.get().valid());
  EXPECT_TRUE(another.get());
}

TEST_F(SemaphoreTest, ADeadHoldersPermitsAreFreeAfterItsTtl) {
  const auto lives = elsewhere.acquire();
  Semaphore brief(manager, "export", 3, {.ttl = 1s});
  const auto dies = brief.acquire(2);
  network->failAlways(Call::renew, Fault::unavailable);
  EXPECT_FALSE(elsewhere.tryAcquire());
  clock->advance(1s);
  EXPECT_FALSE(dies.valid());
  EXPECT_TRUE(elsewhere.tryAcquire(2));
  EXPECT_FALSE(elsewhere.tryAcquire(3));
  EXPECT_TRUE(lives.valid());
}

TEST_F(SemaphoreTest, TheReplyThatIsLostIsAskedForAgainAndCountedOnce) {
  network->fail(Call::acquire, {Fault::replyLost});
  auto held = exports.acquire(2);
  network->fail(Call::release, {Fault::replyLost});
  EXPECT_EQ(exports.holders().size(), 1U);
  EXPECT_TRUE(elsewhere.tryAcquire(1));
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_TRUE(elsewhere.tryAcquire(3));
}

TEST_F(SemaphoreTest, WhatACallThatFailedMayHaveIsGivenBack) {
  network->fail(Call::acquire, {Fault::replyLost, Fault::replyLost, Fault::replyLost});
  EXPECT_THROW((void)exports.tryAcquire(3), OutcomeUnknown);
  // In the background.
  while (!elsewhere.tryAcquire(3)) std::this_thread::yield();
}

TEST_F(SemaphoreTest, TellsWhoHasHowMany) {
  EXPECT_TRUE(exports.holders().empty());
  const auto held = elsewhere.acquire(2);
  const auto holders = exports.holders();
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders[0].owner, "tester");
  EXPECT_EQ(holders[0].share, (Share{2, 3}));
}

TEST_F(SemaphoreTest, IsResizedWithoutLosingHolders) {
  auto held = exports.acquire(3);
  exports.resize(5);
  EXPECT_EQ(exports.permits(), 5U);
  EXPECT_TRUE(held.valid());
  held.renew();
  const auto more = exports.tryAcquire(2);
  EXPECT_TRUE(more);
  EXPECT_FALSE(exports.tryAcquire());
  EXPECT_THROW((void)elsewhere.tryAcquire(), ConfigError) << "it still has 3";
  elsewhere.resize(5);
  held.release();
  EXPECT_TRUE(elsewhere.tryAcquire(3));
}

TEST_F(SemaphoreTest, RefusesNumbersOutOfRange) {
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { Semaphore none(manager, "export", 0); }),
            "a limit of 0 permits is not 1 to 1000000");
  EXPECT_EQ(message([&] { Semaphore many(manager, "export", 1'000'001); }),
            "a limit of 1000001 permits is not 1 to 1000000");
  EXPECT_EQ(message([&] { (void)exports.tryAcquire(0); }), "a share of 0 permits is not 1 to 3, the limit");
  EXPECT_EQ(message([&] { (void)exports.tryAcquire(4); }), "a share of 4 permits is not 1 to 3, the limit");
  EXPECT_EQ(message([&] { exports.resize(0); }), "a limit of 0 permits is not 1 to 1000000");
  ManagerOptions shared = options();
  shared.lock.share = Share{};
  EXPECT_EQ(message([&] { LockManager wrong(store, shared); }),
            "a share belongs to a call, not to a manager's options");
}

/// A store that counts no permits.
class WithoutPermits final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;
  std::string name() const override { return "plain:"; }
  std::string_view whyNot(const std::type_info& type) const noexcept override {
    return type == typeid(Permits) ? "it has no numbers" : "";
  }
};

TEST_F(SemaphoreTest, AStoreWithoutPermitsIsRefusedAtOnceWithTheReason) {
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  LockManager plain(std::make_shared<WithoutPermits>(store), options(seed + 2));
  const std::string refusal = "the store plain: has no shared locks and no semaphores: it has no numbers";
  EXPECT_EQ(message([&] { Semaphore semaphore(plain, "export", 3); }), refusal);
  EXPECT_EQ(message([&] { (void)plain.lockShared("export"); }), refusal);
  EXPECT_EQ(message([&] { (void)plain.shareHolders("export"); }), refusal);
  EXPECT_TRUE(plain.tryLock("export"));
}

}  // namespace
}  // namespace lockkeeper::test

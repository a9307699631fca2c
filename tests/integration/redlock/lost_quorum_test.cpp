#include <atomic>
#include <functional>

#include "lockkeeper/lock_manager.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using LostQuorum = RedlockTest;

TEST_F(LostQuorum, ALockIsSuspectThenLostBeforeItsLeaseEndsAndNeverHeldAgain) {
  constexpr auto ttl = 3000ms;
  ManagerOptions options;
  const auto rounds = std::make_shared<Rounds>();
  options.environment.listener = rounds;
  LockManager manager(open("restartGuard=off&nodeTimeout=150ms&connectTimeout=300ms&ioTimeout=500ms", rounds),
                      options);
  const Lock lock = manager.lock("k", {.ttl = ttl, .waitFor = 30s, .safetyMargin = 1s});
  std::atomic<Instant> lostAt{Instant::max()};
  const std::stop_callback<std::function<void()>> onLoss(lock.lost(), [&] { lostAt = now(); });
  // Its last renewal may have been sent just now, but none that is sent from now on gets a quorum.
  for (std::size_t node = 0; node < 3; ++node) servers[node].pause();
  const Instant end = now() + ttl;
  EXPECT_TRUE(waitUntil([&] { return lock.lost().stop_requested(); }));
  EXPECT_TRUE(waitUntil([&] { return lostAt.load() < end; }, 1s));
  EXPECT_FALSE(lock.valid());
  EXPECT_GT(rounds->suspected(), 0);

  for (std::size_t node = 0; node < 3; ++node) servers[node].resume();
  rounds->clear();
  const Instant later = in(1s);
  while (now() < later) ASSERT_FALSE(lock.valid());
  EXPECT_EQ(lock.state(), LockState::lost);
  EXPECT_TRUE(waitUntil([&] { return manager.tryLock("k", {.waitFor = 30s}).has_value(); }));
}

TEST_F(LostQuorum, TwoHangingNodesCostNoLock) {
  constexpr auto ttl = 2000ms;
  LockManager manager(open());
  Lock lock = manager.lock("k", {.ttl = ttl, .waitFor = 30s});
  for (std::size_t node = 0; node < 2; ++node) servers[node].pause();
  const Instant later = in(2 * ttl);
  while (now() < later) {
    ASSERT_TRUE(lock.valid());
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(lock.release(), ReleaseResult::released);
  for (std::size_t node = 0; node < 2; ++node) servers[node].resume();
}

TEST_F(LostQuorum, AClaimThatAMajorityHasForgottenIsLostAtOnce) {
  const auto driver = open();
  ASSERT_TRUE(allAgree(*driver));
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  ASSERT_TRUE(waitUntil([&] { return votes(who.key) == nodeCount; }));
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  for (const std::size_t node : {0U, 1U}) ASSERT_EQ(servers[node].command({"DEL", who.key}), "1");
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
  EXPECT_TRUE(waitUntil([&] { return votes(who.key) == nodeCount; })) << "they get it back";

  for (const std::size_t node : {0U, 1U, 2U}) ASSERT_EQ(servers[node].command({"DEL", who.key}), "1");
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::notOwner);
  EXPECT_EQ(votes(who.key), 2U) << "without a quorum nobody gets it back";
}

TEST_F(LostQuorum, ANodeThatSomebodyElseHasIsNotTakenFromHim) {
  const auto driver = open();
  ASSERT_TRUE(allAgree(*driver));
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  ASSERT_TRUE(waitUntil([&] { return votes(who.key) == nodeCount; }));
  ASSERT_EQ(servers[0].command({"SET", who.key, "somebody else"}), "OK");
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  for (int i = 0; i < 3; ++i) {
    driver->renew({&renewal, 1}, soon());
    EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
  }
  EXPECT_EQ(servers[0].command({"GET", who.key}), "somebody else");
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(servers[0].command({"GET", who.key}), "somebody else");
}

}  // namespace
}  // namespace lockkeeper::test

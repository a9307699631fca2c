#include <thread>

#include "forked_child.h"
#include "getlock_fixture.h"
#include "inherited_driver.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using GetLockFork = GetLockTest;

TEST_P(GetLockFork, TheChildOwnsNothingAndTheParentsLockLivesOn) {
  auto manager = std::make_unique<LockManager>(store.openProxied());
  std::optional<Lock> beside = manager->lock("beside", {.ttl = 1500ms});
  // It shares that one's session, and draws its fence on another.
  std::optional<Lock> lock = manager->lock("forked", {.ttl = 1500ms});
  const std::string session = store.ask("SELECT IS_USED_LOCK('forked')");
  const int failedCheck = inForkedChild([&] {
    if (lock->valid()) return 1;
    if (!throwsForked([&] { (void)manager->tryLock("forked"); })) return 2;
    if (lock->release() != ReleaseResult::notHeld) return 3;
    lock.reset();
    beside.reset();
    manager.reset();
    return 0;
  });
  EXPECT_EQ(failedCheck, 0);
  const Instant later = in(2s);
  while (now() < later) {
    ASSERT_TRUE(lock->valid()) << "the parent goes on renewing";
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(store.ask("SELECT IS_USED_LOCK('forked')"), session);
  EXPECT_EQ(store.proxy.connections(), 2U) << "of locks, and of fences";
  EXPECT_EQ(lock->release(), ReleaseResult::released);
}

TEST_P(GetLockFork, AnInheritedDriverTouchesNoSocket) {
  inherit(store.openProxied());
  EXPECT_EQ(store.proxy.connections(), 1U);
}

TEST_P(GetLockFork, TheChildMayMakeItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer allows no new thread after a fork";
#endif
  makeOneInTheChild([&] { return store.open(); });
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockFork, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

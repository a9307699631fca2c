#include "forked_child.h"
#include "inherited_driver.h"
#include "lockkeeper/lock_manager.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using Fork = RedisFaultTest;

TEST_F(Fork, TheChildOwnsNothingAndTheParentsLockLivesOn) {
  auto manager = std::make_unique<LockManager>(openProxied());
  std::optional<Lock> lock = manager->lock("k", {.ttl = 1500ms});
  const std::string holder = server.command({"GET", "k"});
  const int failedCheck = inForkedChild([&] {
    if (lock->valid()) return 1;
    if (!throwsForked([&] { (void)manager->tryLock("k"); })) return 2;
    if (!throwsForked([&] { (void)manager->holder("k"); })) return 3;
    if (!throwsForked([&] { lock->renew(); })) return 4;
    if (lock->release() != ReleaseResult::notHeld) return 5;
    lock.reset();
    manager.reset();
    return 0;
  });
  EXPECT_EQ(failedCheck, 0);
  EXPECT_EQ(server.command({"GET", "k"}), holder) << "the child has released its parent's lock";
  EXPECT_EQ(proxy.connections(), 1U) << "the child has connected";
  const Instant later = in(2s);
  while (now() < later) {
    ASSERT_TRUE(lock->valid()) << "the parent goes on renewing";
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(proxy.connections(), 1U) << "the child has ended the parent's connection";
  EXPECT_EQ(lock->release(), ReleaseResult::released);
}

TEST_F(Fork, AnInheritedDriverTouchesNoSocket) {
  std::size_t connections = 0;
  for (const char* scheme : {"redis", "redis+legacy"}) {
    inherit(openRedis(proxy.port(), "", scheme));
    EXPECT_EQ(proxy.connections(), ++connections);
  }
}

TEST_F(Fork, TheChildMayMakeItsOwn) {
  makeOneInTheChild([&] { return openRedis(server.port()); });
}

}  // namespace
}  // namespace lockkeeper::test

#include "lockkeeper/redis/redlock_driver.h"
#include "lockkeeper/testing/fake_fences.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

using testing::FakeFences;

class FencedRedlock : public RedlockTest {
 protected:
  const std::shared_ptr<FakeFences> fences = std::make_shared<FakeFences>();
  const std::shared_ptr<LockDriver> driver = [this] {
    StoreRegistry registry;
    redis::use(registry);
    registry.addFences("fake", [this](const StoreUri&, const Environment&) { return fences; });
    return registry.open(redlockUri(ports(), std::string(withoutGuard) + "&fenceStore=fake:"));
  }();
};

TEST_F(FencedRedlock, EachGrantHasAHigherFenceAndRefusalsCostNone) {
  EXPECT_EQ(driver->promises().fence, FencePromise::durable);
  const Claimant first{};
  Claimant second;
  second.key = first.key;
  const AcquireResult grant = driver->acquire(first.request());
  ASSERT_TRUE(granted(grant));
  EXPECT_EQ(std::get<Granted>(grant).fence, 1U);
  EXPECT_FALSE(granted(driver->acquire(second.request())));
  EXPECT_EQ(fences->calls(), 1);
  ASSERT_EQ(driver->release(first.claim(), soon()), ReleaseOutcome::released);
  const AcquireResult next = driver->acquire(second.request());
  ASSERT_TRUE(granted(next));
  EXPECT_EQ(std::get<Granted>(next).fence, 2U);
}

TEST_F(FencedRedlock, WithoutAFenceThereIsNoGrant) {
  ASSERT_TRUE(allAgree(*driver));
  fences->fail(true);
  const Claimant who{};
  EXPECT_THROW((void)driver->acquire(who.request()), StoreUnavailable);
  EXPECT_EQ(fences->calls(), 2) << "one of them was for the first lock of the test";
  EXPECT_TRUE(waitUntil([&] { return votes(who.key) == 0; })) << "it must be given back";
  fences->fail(false);
  EXPECT_TRUE(granted(driver->acquire(who.request())));
}

TEST_F(FencedRedlock, ASourceThatNobodyHasRegisteredIsNamed) {
  try {
    (void)openRedlock(redlockUri(ports(), "fenceStore=mysql%3A%2F%2Fann%3As3cr3t%40db%2Fshop"));
    ADD_FAILURE() << "opened";
  } catch (const ConfigError& fault) {
    EXPECT_NE(std::string(fault.what()).find("'mysql'"), std::string::npos) << fault.what();
    EXPECT_EQ(std::string(fault.what()).find("s3cr3t"), std::string::npos) << fault.what();
  }
}

}  // namespace
}  // namespace lockkeeper::test

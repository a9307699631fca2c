#include "inherited_driver.h"

#include <gtest/gtest.h>

#include "claimant.h"
#include "forked_child.h"

namespace lockkeeper::test {

void inherit(std::shared_ptr<LockDriver> driver) {
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const int failedCheck = inForkedChild([&] {
    Renewal renewal{.claim = who.claim(), .ttl = longTtl};
    if (!throwsForked([&] { (void)driver->acquire(who.request()); })) return 1;
    if (!throwsForked([&] { driver->renew({&renewal, 1}, soon()); })) return 2;
    if (!throwsForked([&] { (void)driver->release(who.claim(), soon()); })) return 3;
    if (!throwsForked([&] { (void)driver->holder(who.key, soon()); })) return 4;
    driver.reset();
    return 0;
  });
  EXPECT_EQ(failedCheck, 0);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

void makeOneInTheChild(const std::function<std::shared_ptr<LockDriver>()>& open) {
  const auto driver = open();
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const int failedCheck = inForkedChild([&] {
    const auto ownDriver = open();
    const Claimant own{};
    if (!granted(ownDriver->acquire(own.request()))) return 1;
    Claimant busy;
    busy.key = who.key;
    if (granted(ownDriver->acquire(busy.request()))) return 2;
    return ownDriver->release(own.claim(), soon()) == ReleaseOutcome::released ? 0 : 3;
  });
  EXPECT_EQ(failedCheck, 0);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

}  // namespace lockkeeper::test

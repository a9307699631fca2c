#include "forked_child.h"
#include "inherited_driver.h"
#include "lockkeeper/driver/inspection.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

using ForkedRedlock = RedlockTest;

TEST_F(ForkedRedlock, AnInheritedDriverTouchesNoSocket) {
  auto driver = open();
  ASSERT_TRUE(allAgree(*driver));
  const int failedCheck = inForkedChild([&] {
    if (!throwsForked([&] { (void)driver->promises(); })) return 1;
    if (!throwsForked([&] { (void)capability<Quorate>(*driver)->views("k", soon()); })) return 2;
    if (!throwsForked([&] { (void)capability<Breakable>(*driver)->breakLock("k", soon()); })) return 3;
    return 0;
  });
  EXPECT_EQ(failedCheck, 0);
  inherit(std::move(driver));
  for (const auto& proxy : proxies) EXPECT_EQ(proxy->connections(), 1U);
}

}  // namespace
}  // namespace lockkeeper::test

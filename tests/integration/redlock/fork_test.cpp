#include <sys/wait.h>
#include <unistd.h>

#include "lockkeeper/capabilities.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

template <class Call>
bool throwsForked(Call call) {
  try {
    call();
  } catch (const ForkedError&) {
    return true;
  }
  return false;
}

using ForkedRedlock = RedlockTest;

TEST_F(ForkedRedlock, AnInheritedDriverTouchesNoSocket) {
  auto driver = open();
  ASSERT_TRUE(allAgree(*driver));
  const Claimant who;
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(30);
    Renewal renewal{.claim = who.claim(), .ttl = longTtl};
    const bool refused =
        throwsForked([&] { (void)driver->acquire(who.request()); }) && throwsForked([&] {
          driver->renew({&renewal, 1}, soon());
        }) &&
        throwsForked([&] { (void)driver->release(who.claim(), soon()); }) &&
        throwsForked([&] { (void)driver->holder(who.key, soon()); }) &&
        throwsForked([&] { (void)driver->promises(); }) &&
        throwsForked([&] { (void)dynamic_cast<Quorate&>(*driver).views(who.key, soon()); }) &&
        throwsForked([&] { (void)dynamic_cast<Breakable&>(*driver).breakLock(who.key, soon()); });
    driver.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  for (const auto& proxy : proxies) EXPECT_EQ(proxy->connections(), 1U);
}

}  // namespace
}  // namespace lockkeeper::test

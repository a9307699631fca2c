#include "console/password_pauses.h"

#include <gtest/gtest.h>

namespace lockkeeper::poco {
namespace {

using namespace std::chrono_literals;

/// Of as many machines as are remembered, each has tried at this time.
void tryOfMany(PasswordPauses& pauses, Instant when) {
  for (std::size_t i = 0; i < PasswordPauses::mostPeers; ++i) (void)pauses.mayTry(std::to_string(i), when);
}

TEST(PasswordPauses, AMachineWaitsForASecondUnlessItWasRight) {
  PasswordPauses pauses;
  const Instant start{};
  EXPECT_TRUE(pauses.mayTry("a", start));
  EXPECT_FALSE(pauses.mayTry("a", start + 999ms));
  EXPECT_TRUE(pauses.mayTry("b", start + 999ms)) << "another machine";
  EXPECT_TRUE(pauses.mayTry("a", start + 1s));
  pauses.wasRight("a");
  EXPECT_TRUE(pauses.mayTry("a", start + 1s));
}

TEST(PasswordPauses, ManyMachinesEndNoPause) {
  PasswordPauses pauses;
  const Instant start{};
  EXPECT_TRUE(pauses.mayTry("a", start));
  tryOfMany(pauses, start + 500ms);
  EXPECT_FALSE(pauses.mayTry("a", start + 999ms));
}

TEST(PasswordPauses, MachinesThatAreTooManyTryAsOne) {
  PasswordPauses pauses;
  const Instant start{};
  tryOfMany(pauses, start);
  EXPECT_TRUE(pauses.mayTry("a", start + 100ms));
  EXPECT_FALSE(pauses.mayTry("a", start + 200ms));
  EXPECT_FALSE(pauses.mayTry("b", start + 200ms));
  pauses.wasRight("a");
  EXPECT_TRUE(pauses.mayTry("b", start + 200ms));
  EXPECT_TRUE(pauses.mayTry("b", start + 1s)) << "there is room for it again";
}

}  // namespace
}  // namespace lockkeeper::poco

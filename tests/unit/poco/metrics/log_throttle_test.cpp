#include "text/log_throttle.h"

#include <gtest/gtest.h>

namespace lockkeeper::poco {
namespace {

using namespace std::chrono_literals;

TEST(LogThrottle, AdmitsTenOfAKindInTenSecondsAndCountsTheRest) {
  LogThrottle throttle;
  const Instant start{};
  for (int line = 0; line < 10; ++line) EXPECT_EQ(throttle.admit("down", start + line * 1s), 0U);
  for (int line = 0; line < 523; ++line) EXPECT_FALSE(throttle.admit("down", start + 9999ms));
  EXPECT_EQ(throttle.admit("slow", start + 9999ms), 0U) << "another kind";
  EXPECT_EQ(throttle.admit("down", start + 10s), 523U);
  for (int line = 1; line < 10; ++line) EXPECT_EQ(throttle.admit("down", start + 11s), 0U);
  EXPECT_FALSE(throttle.admit("down", start + 19s));
  EXPECT_EQ(throttle.admit("down", start + 1h), 1U);
}

TEST(LogThrottle, CountsWhatWasLeftOutBeforeIt) {
  LogThrottle throttle;
  const Instant now{};
  EXPECT_EQ(throttle.admit("down", now, 3), 3U);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(throttle.admit("down", now), 0U);
  EXPECT_FALSE(throttle.admit("down", now, 7));
  EXPECT_EQ(throttle.admit("down", now + std::chrono::seconds{10}), 8U);
}

TEST(LogThrottle, SaysHowManyWereLeftOut) {
  EXPECT_EQ(leftOutText(0), "");
  EXPECT_EQ(leftOutText(523), ", and 523 like it were left out");
}

}  // namespace
}  // namespace lockkeeper::poco

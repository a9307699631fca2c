// Yielding before sleeping: a few times only, and never beside threads that keep the processor.

#include "yielder.h"

#include <gtest/gtest.h>

#include "lockkeeper/testing/fake_clock.h"

namespace lockkeeper::detail {
namespace {

using namespace std::chrono_literals;

class YielderTest : public ::testing::Test {
 protected:
  // How often a wait that is not over looks whether it is, when each turn takes so long.
  int turnsOf(std::chrono::nanoseconds length) {
    int looked = 0;
    yielder.yieldUntil(
        [&] {
          ++looked;
          clock.advance(length);
          return false;
        },
        16);
    return looked;
  }

  testing::FakeClock clock;
  Yielder yielder{clock};
};

TEST_F(YielderTest, LooksBeforeEachTurnAndNotForever) { EXPECT_EQ(turnsOf(60us), 16); }

TEST_F(YielderTest, EndsAsSoonAsTheWaitIsOver) {
  int looked = 0;
  yielder.yieldUntil([&] { return ++looked == 3; }, 16);
  EXPECT_EQ(looked, 3);
}

TEST_F(YielderTest, DoesNotRestAfterATurnBelowAMillisecond) { EXPECT_EQ(turnsOf(1ms - 1ns), 16); }

TEST_F(YielderTest, RestsTenTimesAsLongAsALongTurnTook) {
  EXPECT_EQ(turnsOf(2ms), 1);
  EXPECT_EQ(turnsOf(0ms), 0);
  clock.advance(20ms - 1ns);
  EXPECT_EQ(turnsOf(0ms), 0);
  clock.advance(1ns);
  EXPECT_EQ(turnsOf(0ms), 16);
}

TEST_F(YielderTest, RestsForASecondAtMost) {
  EXPECT_EQ(turnsOf(1h), 1);
  clock.advance(1s - 1ns);
  EXPECT_EQ(turnsOf(0ms), 0);
  clock.advance(1ns);
  EXPECT_EQ(turnsOf(0ms), 16);
}

TEST_F(YielderTest, RestsForAllWhoYieldWithIt) {
  int looked = 0;
  yielder.yieldUntil(
      [&] {
        if (++looked == 2) {
          EXPECT_EQ(turnsOf(1ms), 1);
        }
        return false;
      },
      16);
  EXPECT_EQ(looked, 2);
}

}  // namespace
}  // namespace lockkeeper::detail

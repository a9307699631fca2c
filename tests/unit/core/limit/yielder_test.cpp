// Yielding before sleeping: a few times only, and never beside threads that keep the processor.

#include "limit/yielder.h"

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

  // From now on.
  std::chrono::nanoseconds lengthOfRest() {
    const Instant start = clock.now();
    while (turnsOf(0ms) == 0) clock.advance(500us);
    return clock.now() - start;
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

TEST_F(YielderTest, RestsForAMillisecondAfterALongTurn) {
  EXPECT_EQ(turnsOf(1ms), 1);
  EXPECT_EQ(lengthOfRest(), 1ms);
  EXPECT_EQ(turnsOf(0ms), 16);
}

TEST_F(YielderTest, RestsTwiceAsLongEachTimeUntilATenthOfASecond) {
  for (const auto expected : {1ms, 2ms, 4ms, 8ms, 16ms, 32ms, 64ms, 100ms, 100ms}) {
    EXPECT_EQ(turnsOf(3ms), 1);
    EXPECT_EQ(lengthOfRest(), expected);
  }
}

TEST_F(YielderTest, ForgetsALongTurnAfterAThousandShortOnes) {
  const auto takeShortOnes = [&](int turns) { yielder.yieldUntil([] { return false; }, turns); };
  EXPECT_EQ(turnsOf(3ms), 1);
  clock.advance(1ms);
  takeShortOnes(999);
  EXPECT_EQ(turnsOf(3ms), 1);
  EXPECT_EQ(lengthOfRest(), 2ms);
  takeShortOnes(1000);
  EXPECT_EQ(turnsOf(3ms), 1);
  EXPECT_EQ(lengthOfRest(), 1ms);
}

TEST_F(YielderTest, RestsOnceForAllWhoYieldWithIt) {
  int looked = 0;
  yielder.yieldUntil(
      [&] {
        if (++looked == 2) {
          EXPECT_EQ(turnsOf(3ms), 1);
        }
        return false;
      },
      16);
  EXPECT_EQ(looked, 2);
  EXPECT_EQ(lengthOfRest(), 1ms);
}

}  // namespace
}  // namespace lockkeeper::detail

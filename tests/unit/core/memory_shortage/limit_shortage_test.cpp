// Each allocation of a caller fails once, while others wait with it for one answer of the store.

#include <gtest/gtest.h>

#include "../limit/rate_fixture.h"
#include "each_allocation.h"

namespace lockkeeper::test {
namespace {

class LimitShortage : public RateFixture {
 protected:
  // A call that ends with what the store says, or for want of memory.
  bool take() {
    try {
      (void)limiter.take(key, policy);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // Three callers: the last one's refusal is remembered.
  const RatePolicy policy = limit("2/1h");
  std::string key = "alice";
};

TEST_F(LimitShortage, EveryCallerInLineIsAnswered) {
  std::future<bool> first, second, release;
  failEachAllocation([&] { take(); },
                     [&] {
                       ASSERT_EQ(second.wait_for(10s), std::future_status::ready);
                       ASSERT_EQ(first.wait_for(10s), std::future_status::ready);
                       EXPECT_TRUE(first.get());
                     },
                     [&] {
                       key += "e";  // of whom nothing is known
                       network->hold();
                       first = background([&] { return take(); });
                       ASSERT_TRUE(network->awaitHeld(1));
                       // The failing caller is to be the one that asks for both, if it gets so far.
                       second = background([&] { return clock->awaitWaiters(1, 100ms), take(); });
                       release = background([&] {
                         clock->awaitWaiters(2, 200ms);
                         network->release();
                         return true;
                       });
                     });
}

TEST_F(LimitShortage, ARefusalThatCannotBeRememberedIsARefusal) {
  const RatePolicy one = limit("1/1h");
  ASSERT_TRUE(limiter.take("bob", one).allowed);
  failEachAllocation([&] { EXPECT_FALSE(limiter.take("bob", one).allowed); },
                     [&] {
                       clock->advance(1h);
                       ASSERT_TRUE(limiter.take("bob", one).allowed);
                     });
}

}  // namespace
}  // namespace lockkeeper::test

// A value for which there is no memory is not put, and harms no other.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "each_allocation.h"
#include "lockkeeper/store/value_store.h"
#include "lockkeeper/testing/fake_clock.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
namespace {

using namespace std::chrono_literals;

TEST(ValueShortage, AValueThatCannotBePutLeavesTheFormerOne) {
  const auto clock = std::make_shared<FakeClock>();
  MemoryValues values(clock);
  const std::string key = "a key that is longer than a short string";
  const std::string old(100, 'o'), fresh(100, 'f');
  bool isPut = false;
  failEachAllocation(
      [&] {
        values.put(key, fresh, 10ms, Instant::max());
        isPut = true;
      },
      [&] {
        EXPECT_EQ(values.get(key, Instant::max()), isPut ? fresh : old);
        clock->advance(10ms);
        EXPECT_EQ(values.get(key, Instant::max()), isPut ? std::nullopt : std::optional(old));
      },
      [&] { values.put(key, old, 1h, Instant::max()); });
  EXPECT_TRUE(isPut);
}

}  // namespace
}  // namespace lockkeeper::test

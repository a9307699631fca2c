#include <gtest/gtest.h>

#include "lockkeeper/error.h"
#include "lockkeeper/store/value_store.h"
#include "lockkeeper/testing/fake_clock.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
namespace {

using namespace std::chrono_literals;

class MemoryValuesTest : public ::testing::Test {
 protected:
  const std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  MemoryValues values{clock, 100};
  const Instant deadline = Instant::max();
};

TEST_F(MemoryValuesTest, AValueEndsWithItsTtlToTheNanosecond) {
  values.put("a", "1", 10ms, deadline);
  clock->advance(10ms - 1ns);
  EXPECT_EQ(values.get("a", deadline), "1");
  EXPECT_FALSE(values.add("a", "2", 10ms, deadline));
  clock->advance(1ns);
  EXPECT_EQ(values.get("a", deadline), std::nullopt);
  EXPECT_FALSE(values.erase("a", deadline));
  EXPECT_TRUE(values.add("a", "2", 10ms, deadline));
}

TEST_F(MemoryValuesTest, ANewValueHasItsOwnTtl) {
  values.put("a", "1", 10ms, deadline);
  values.put("a", "2", 30ms, deadline);
  clock->advance(20ms);
  EXPECT_EQ(values.get("a", deadline), "2");
  values.put("a", "3", 5ms, deadline);
  clock->advance(5ms);
  EXPECT_EQ(values.get("a", deadline), std::nullopt);
}

TEST_F(MemoryValuesTest, WhatDoesNotFitIsRefusedAndNothingElseIsDropped) {
  values.put("a", std::string(49, 'x'), 10ms, deadline);
  values.put("b", std::string(49, 'x'), 20ms, deadline);
  EXPECT_THROW(values.put("c", "", 10ms, deadline), StoreUnavailable);
  EXPECT_THROW(values.add("c", "", 10ms, deadline), StoreUnavailable);
  EXPECT_THROW(values.put("b", std::string(50, 'x'), 10ms, deadline), StoreUnavailable);
  EXPECT_EQ(values.get("b", deadline), std::string(49, 'x')) << "the old value stays";
  values.put("b", std::string(49, 'y'), 20ms, deadline);
  clock->advance(10ms);
  values.put("c", std::string(49, 'x'), 10ms, deadline);
  EXPECT_TRUE(values.erase("c", deadline));
  values.put("d", std::string(49, 'x'), 10ms, deadline);
}

}  // namespace
}  // namespace lockkeeper::test

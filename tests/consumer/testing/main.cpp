// The sample of a driver, and the suite that it must pass. This file adds the words that the test of
// consumers waits for.
#include <gtest/gtest.h>
#include <lockkeeper/testing/fault_proxy.h>

#include <iostream>

namespace {

struct Verdict : ::testing::EmptyTestEventListener {
  void OnTestProgramEnd(const ::testing::UnitTest& tests) override {
    std::cout << (tests.Passed() && tests.successful_test_count() > 0 ? "order 42 is ours\n" : "failed\n");
  }
};

const bool listening = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new Verdict);
  return true;
}();

TEST(FaultProxyOfThePackage, ListensAndWaitsForItsFault) {
  lockkeeper::testing::FaultProxy proxy(1);
  proxy.cutReplies(7, lockkeeper::testing::Ending::rst);
  EXPECT_GT(proxy.port(), 0);
  EXPECT_EQ(proxy.fired(), 0U);
}

}  // namespace

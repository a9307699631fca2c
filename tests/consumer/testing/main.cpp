// A driver of one's own, for which the embedded store stands in, and the suite that it must pass.
#include <lockkeeper/memory/memory_driver.h>
#include <lockkeeper/testing/driver_contract.h>
#include <lockkeeper/testing/fake_clock.h>

#include <iostream>

namespace {

lockkeeper::testing::DriverFactory memory() {
  const auto clock = std::make_shared<lockkeeper::testing::FakeClock>();
  return {.name = "memory",
          .open = [driver = std::make_shared<lockkeeper::MemoryDriver>(clock)] { return driver; },
          .fence = lockkeeper::FencePromise::whileStoreKeepsWrites,
          .waitable = true,
          .browsable = true,
          .breakable = true,
          .reportsLosses = true,
          .permits = true,
          .batchable = true,
          .showsWaiters = true,
          .clock = clock,
          .advance = [clock](std::chrono::milliseconds length) { clock->advance(length); },
          .queued = [clock] { return clock->waiters(); }};
}

struct Verdict : ::testing::EmptyTestEventListener {
  void OnTestProgramEnd(const ::testing::UnitTest& tests) override {
    std::cout << (tests.Passed() && tests.successful_test_count() > 0 ? "order 42 is ours\n" : "failed\n");
  }
};

const bool listening = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new Verdict);
  return true;
}();

}  // namespace

using lockkeeper::testing::DriverContract;
INSTANTIATE_TEST_SUITE_P(Memory, DriverContract, ::testing::Values(memory()),
                         lockkeeper::testing::factoryName);

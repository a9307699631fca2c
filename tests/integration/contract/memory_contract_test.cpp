#include <memory>

#include "lockkeeper/memory_driver.h"
#include "lockkeeper/testing/driver_contract.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/manager_contract.h"

namespace lockkeeper::testing {
namespace {

/// Each call gives stores of its own, so all clients of one store are one object.
DriverFactory memory(std::string name, std::shared_ptr<Clock> clock) {
  return {.name = std::move(name),
          .open = [driver = std::make_shared<MemoryDriver>(clock)] { return driver; },
          .fence = FencePromise::whileStoreKeepsWrites,
          .waitable = true,
          .browsable = true,
          .breakable = true,
          .clock = clock};
}

DriverFactory memoryOnFakeClock() {
  const auto clock = std::make_shared<FakeClock>();
  DriverFactory factory = memory("FakeClock", clock);
  factory.advance = [clock](std::chrono::milliseconds length) { clock->advance(length); };
  factory.queued = [clock] { return clock->waiters(); };
  return factory;
}

DriverFactory memoryOnSystemClock() { return memory("SystemClock", systemClock()); }

}  // namespace

INSTANTIATE_TEST_SUITE_P(Memory, DriverContract,
                         ::testing::Values(memoryOnFakeClock(), memoryOnSystemClock()), factoryName);
INSTANTIATE_TEST_SUITE_P(Memory, ManagerContract, ::testing::Values(memoryOnSystemClock()), factoryName);

}  // namespace lockkeeper::testing

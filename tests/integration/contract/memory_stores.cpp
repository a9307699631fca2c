#include <memory>
#include <string>

#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/testing/fake_clock.h"
#include "stores.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;
using lockkeeper::testing::FakeClock;
namespace {

/// Each call gives stores of its own, so all clients of one store are one object.
DriverFactory memory(std::string name, std::shared_ptr<Clock> clock) {
  return {.name = std::move(name),
          .open = [driver = std::make_shared<MemoryDriver>(clock)] { return driver; },
          .fence = FencePromise::whileStoreKeepsWrites,
          .waitable = true,
          .browsable = true,
          .breakable = true,
          .reportsLosses = true,
          .permits = true,
          .batchable = true,
          .showsWaiters = true,
          .clock = clock};
}

}  // namespace

std::vector<DriverFactory> memoryStores() { return {memory("SystemClock", systemClock())}; }

DriverFactory memoryOnFakeClock() {
  const auto clock = std::make_shared<FakeClock>();
  DriverFactory factory = memory("FakeClock", clock);
  factory.advance = [clock](std::chrono::milliseconds length) { clock->advance(length); };
  factory.queued = [clock] { return clock->waiters(); };
  return factory;
}

}  // namespace lockkeeper::test

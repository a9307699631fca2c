#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/driver.h"

#include <gtest/gtest.h>

/// What tests of drivers, and of programs that use locks, need.
namespace lockkeeper::testing {

/// A store on which the contract suites run. It should be one that nothing else uses: the suites lock
/// whatever key they like.
struct DriverFactory {
  /// [A-Za-z0-9_]: part of the tests' names.
  std::string name;

  /// A client of the store; a second call gives a second client of the same store. Called while tests run,
  /// not when they are listed: start servers in it, not before. GoogleTest evaluates its arguments once for
  /// each test, so a factory that keeps a server belongs in a static variable, given to ValuesIn().
  std::function<std::shared_ptr<LockDriver>()> open;

  /// What the driver is expected to promise and to be able to do.
  FencePromise fence = FencePromise::none;
  bool waitable = false;
  bool browsable = false;
  bool breakable = false;
  bool reportsLosses = false;
  bool postable = false;
  bool permits = false;
  bool batchable = false;
  bool batchReleasing = false;
  bool showsWaiters = false;  ///< WaiterBrowsable

  /// A lease that ends while a test waits for it: the shortest that the store can keep well.
  std::chrono::milliseconds shortTtl{200};

  /// How much longer than its ttl the store may keep a key whose holder is silent.
  std::chrono::milliseconds expirySlack{0};

  /// The store is shared with clients that delete keys of others: a claim whose key is gone gets
  /// ownerUnknown, in place of notOwner.
  bool goneIsUncertain = false;

  /// The clock of the drivers that open() makes.
  std::shared_ptr<Clock> clock = systemClock();

  /// Lets the store's time pass. A store with a clock of its own can only be waited for.
  std::function<void(std::chrono::milliseconds)> advance = [](std::chrono::milliseconds length) {
    std::this_thread::sleep_for(length);
  };

  /// How many claims wait in the store's queue, for stores that are Waitable and can tell. Without it the
  /// suite cannot check the order in which they are served.
  std::function<std::size_t()> queued{};

  /// How long a waiter that the store does not hear of keeps its place in the queue. Where a test takes
  /// longer, since the machine stands still, the order is not judged.
  std::chrono::milliseconds placeKeptFor = std::chrono::hours{1};

  /// For stores whose waiters are in several processes and are woken up by messages; tests that need what is
  /// not given are skipped. The drivers of such a store bound what a lost message costs: `longestPause`.
  /// @{
  /// Puts a waiter in the queue of `key`, behind the others, whose process has just died.
  std::function<void(const std::string& key)> addDeadWaiter{};
  /// Ends all connections on which waiters are woken up.
  std::function<void()> endWakeUps{};
  /// How many requests the store has had from drivers.
  std::function<std::size_t()> requests{};
  std::chrono::milliseconds longestPause{0};
  /// @}
};

/// For GoogleTest's messages: the name.
inline void PrintTo(const DriverFactory& factory, std::ostream* out) { *out << factory.name; }

/// The last argument of INSTANTIATE_TEST_SUITE_P: names a test after its store.
inline std::string factoryName(const ::testing::TestParamInfo<DriverFactory>& info) {
  return info.param.name;
}

}  // namespace lockkeeper::testing

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/rate_driver.h"

#include <gtest/gtest.h>

namespace lockkeeper::testing {

/// A store on which the rate contract runs. It should be one that nothing else uses.
struct RateFactory {
  /// [A-Za-z0-9_]: part of the tests' names.
  std::string name;

  /// A client of the store whose own clock is the given one; a second call gives a second client of the same
  /// store. Called while tests run, not when they are listed.
  std::function<std::shared_ptr<RateDriver>(std::shared_ptr<Clock>)> open;

  /// The clock that the clients of most tests get.
  std::shared_ptr<Clock> clock = systemClock();

  /// Whether that is also the store's clock: then a client's clock cannot be wrong.
  bool clockIsTheStores = false;

  /// Lets the store's time pass. A store with a clock of its own can only be waited for.
  std::function<void(std::chrono::microseconds)> advance = [](std::chrono::microseconds length) {
    std::this_thread::sleep_for(length);
  };

  /// What keys must contain that are charged in one call, where the store asks for that.
  std::string commonTag{};

  /// How many random arrivals the bounds are checked with.
  int arrivals = 20'000;
};

/// For GoogleTest's messages: the name.
inline void PrintTo(const RateFactory& factory, std::ostream* out) { *out << factory.name; }

/// The last argument of INSTANTIATE_TEST_SUITE_P.
inline std::string rateFactoryName(const ::testing::TestParamInfo<RateFactory>& info) {
  return info.param.name;
}

}  // namespace lockkeeper::testing

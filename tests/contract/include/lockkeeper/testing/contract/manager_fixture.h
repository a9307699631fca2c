#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "lockkeeper/base/random.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/testing/driver_factory.h"

#include <gtest/gtest.h>

namespace lockkeeper::testing {

/// The suite. Each test has a key of its own, and two managers that know nothing of each other, as in two
/// processes.
class ManagerContract : public ::testing::TestWithParam<DriverFactory> {
 protected:
  using ms = std::chrono::milliseconds;

  static ManagerOptions options(std::string keyNamespace, std::string owner) {
    ManagerOptions result;
    result.keyNamespace = std::move(keyNamespace);
    result.owner = std::move(owner);
    return result;
  }

  Instant now() const { return GetParam().clock->now(); }

  template <class Condition>
  bool eventually(Condition condition, ms bound = std::chrono::seconds{30}) {
    const Instant end = now() + bound;
    while (!condition() && now() < end) std::this_thread::sleep_for(ms{2});
    return condition();
  }

  const std::string key = "manager-" + Token::generate(*systemRandom()).hex();
  const std::shared_ptr<LockDriver> driver = GetParam().open();
  LockManager manager{driver};
  LockManager other{GetParam().open()};
};

}  // namespace lockkeeper::testing

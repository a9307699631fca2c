#pragma once

/// @file
/// What a ValueStore must keep, as a GoogleTest suite: values for their time, and those who wait for one, as
/// a CountDownLatch does. Instantiate ValueContract with ValueFactories, as driver_contract.h says for
/// DriverContract.

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include "lockkeeper/base/random.h"
#include "lockkeeper/base/token.h"
#include "lockkeeper/store/value_store.h"

#include <gtest/gtest.h>

namespace lockkeeper::testing {

/// A store of values on the machine's own clock.
struct ValueFactory {
  /// [A-Za-z0-9_]: part of the tests' names.
  std::string name;

  /// A client of the store; a second call gives a second client of the same store. Called while tests run,
  /// not when they are listed.
  std::function<std::shared_ptr<ValueStore>()> open;
};

/// For GoogleTest's messages: the name.
inline void PrintTo(const ValueFactory& factory, std::ostream* out) { *out << factory.name; }

/// The last argument of INSTANTIATE_TEST_SUITE_P.
inline std::string valueFactoryName(const ::testing::TestParamInfo<ValueFactory>& info) {
  return info.param.name;
}

/// The suite. Each test has a key of its own, and two clients of the store.
class ValueContract : public ::testing::TestWithParam<ValueFactory> {
 protected:
  using ms = std::chrono::milliseconds;
  static constexpr ms longTtl = std::chrono::minutes{10};

  static Instant now() { return systemClock()->now(); }
  static Instant soon() { return now() + std::chrono::seconds{10}; }

  /// What await() finds by `until`, asked again when it gives up before.
  static std::optional<std::string> awaited(ValueStore& store, const std::string& which, Instant until,
                                            const std::stop_token& stop = {}) {
    for (;;) {
      auto value = store.await(which, until, stop, soon());
      if (value || stop.stop_requested() || now() >= until) return value;
      std::this_thread::sleep_for(ms{5});
    }
  }

  const std::string key = "value-" + Token::generate(*systemRandom()).hex();
  const std::shared_ptr<ValueStore> values = GetParam().open();
  const std::shared_ptr<ValueStore> other = GetParam().open();
};

TEST_P(ValueContract, KeepsAValueForAllClientsUntilItIsReplacedOrErased) {
  EXPECT_EQ(other->get(key, soon()), std::nullopt);
  values->put(key, "1", longTtl, soon());
  EXPECT_EQ(other->get(key, soon()), "1");
  other->put(key, "", longTtl, soon());
  EXPECT_EQ(values->get(key, soon()), "") << "an empty value is a value";
  EXPECT_TRUE(values->erase(key, soon()));
  EXPECT_FALSE(other->erase(key, soon()));
  EXPECT_EQ(other->get(key, soon()), std::nullopt);
}

TEST_P(ValueContract, OfTwoWhoAddTheFirstOneWins) {
  EXPECT_TRUE(values->add(key, "first", longTtl, soon()));
  EXPECT_FALSE(other->add(key, "second", longTtl, soon()));
  EXPECT_EQ(other->get(key, soon()), "first");
}

TEST_P(ValueContract, AValueEndsWithItsTtl) {
  values->put(key, "kept", longTtl, soon());
  values->put(key, "brief", ms{60}, soon());
  const Instant end = soon();
  while (other->get(key, soon()) && now() < end) std::this_thread::sleep_for(ms{5});
  EXPECT_EQ(other->get(key, soon()), std::nullopt);
  EXPECT_TRUE(other->add(key, "next", longTtl, soon()));
}

TEST_P(ValueContract, TakesEveryByteAndTheLongestKeyAndValue) {
  std::string longest(maxValueBytes, '\0');
  longest.back() = '\xff';
  const std::string longKey = key + std::string(512 - key.size(), '\n');
  values->put(longKey, longest, longTtl, soon());
  EXPECT_TRUE(other->get(longKey, soon()) == longest);
  EXPECT_TRUE(values->erase(longKey, soon()));
  EXPECT_THROW(values->put(key, longest + "x", longTtl, soon()), std::invalid_argument);
  EXPECT_THROW((void)values->add(key, "x", ms{0}, soon()), std::invalid_argument);
  EXPECT_THROW(values->put(key, "x", std::chrono::hours{24 * 367}, soon()), std::invalid_argument);
  EXPECT_THROW((void)values->get("", soon()), std::invalid_argument);
  EXPECT_THROW((void)values->erase("a:lockkeeper:b", soon()), std::invalid_argument);
  EXPECT_EQ(other->get(key, soon()), std::nullopt) << "nothing was sent";
}

TEST_P(ValueContract, AllWhoWaitGetTheValueThatIsAnnounced) {
  const auto third = GetParam().open();
  const auto waits = [&](ValueStore& store) {
    return std::async(std::launch::async,
                      [&] { return awaited(store, key, now() + std::chrono::minutes{1}); });
  };
  auto first = waits(*other);
  auto second = waits(*third);
  EXPECT_EQ(first.wait_for(ms{50}), std::future_status::timeout);
  values->announce(key, "done", longTtl, soon());
  EXPECT_EQ(first.get(), "done");
  EXPECT_EQ(second.get(), "done");
  EXPECT_EQ(awaited(*other, key, now() + std::chrono::minutes{1}), "done") << "who comes later, too";
}

TEST_P(ValueContract, AWaitEndsAtItsTimeOrWhenItIsStopped) {
  const Instant began = now();
  EXPECT_EQ(awaited(*values, key, began + ms{100}), std::nullopt);
  EXPECT_GE(now() - began, ms{100});
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    return awaited(*values, key, now() + std::chrono::minutes{10}, stop.get_token());
  });
  stop.request_stop();
  ASSERT_EQ(waiting.wait_for(std::chrono::seconds{20}), std::future_status::ready);
  EXPECT_EQ(waiting.get(), std::nullopt);
}

}  // namespace lockkeeper::testing

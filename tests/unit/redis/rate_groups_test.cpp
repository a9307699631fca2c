// Group commit of charges: who waits for whom, and whose failure is whose.

#include "limit/rate_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/fake_clock.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

class RateGroupsTest : public ::testing::Test {
 protected:
  struct Call {
    std::vector<std::string> keys;
    Instant deadline;
  };

  ~RateGroupsTest() override { open(); }

  std::future<void> ask(const std::string& key, std::chrono::nanoseconds timeout = 1s) {
    return std::async(std::launch::async, [this, key, until = clock.now() + timeout] {
      RateCharge charge{.key = key, .law = nullptr};
      groups.decide(charge, until);
      EXPECT_EQ(charge.outcome.granted, 1);
    });
  }

  // So many calls that one more is gathered for.
  void fill() {
    for (const char* key : {"1", "2", "3"}) {
      busy.push_back(ask(key));
      awaitCalls(busy.size());
    }
  }

  void awaitCalls(std::size_t count) {
    std::unique_lock held(mutex);
    ASSERT_TRUE(changed.wait_for(held, 20s, [&] { return calls.size() >= count; }));
  }

  // Lets those through that are under way, and all that come.
  void open() {
    const std::lock_guard guard(mutex);
    closed = false;
    changed.notify_all();
  }

  void call(std::span<GroupedCharge> group, Instant deadline) {
    std::unique_lock held(mutex);
    Call& made = calls.emplace_back(Call{{}, deadline});
    for (const GroupedCharge& each : group) made.keys.emplace_back(each.charge->key);
    const std::vector<std::string> keys = made.keys;
    changed.notify_all();
    changed.wait(held, [&] { return !closed; });
    if (std::count(keys.begin(), keys.end(), "outage") > 0) throw StoreUnavailable("down");
    for (GroupedCharge& each : group) {
      each.charge->outcome.granted = 1;
      if (each.charge->key == "bad") each.failure = std::make_exception_ptr(ConfigError("bad"));
    }
  }

  testing::FakeClock clock;
  std::mutex mutex;
  std::condition_variable changed;
  bool closed = true;
  std::vector<Call> calls;
  RateGroups groups{clock,
                    [this](std::span<GroupedCharge> group, Instant deadline) { call(group, deadline); }};
  std::vector<std::future<void>> busy;
};

TEST_F(RateGroupsTest, FewCallersDoNotWaitForEachOther) {
  fill();
  for (const Call& each : calls) EXPECT_EQ(each.keys.size(), 1U);
}

TEST_F(RateGroupsTest, ThoseWhoComeMeanwhileAreOneCallWithTheTimeOfTheFirst) {
  fill();
  std::vector<std::future<void>> rest;
  for (const char* key : {"a", "b", "c"}) {
    rest.push_back(ask(key, 1s + 1ms * rest.size()));
    ASSERT_TRUE(clock.awaitWaiters(rest.size()));
  }
  open();
  for (auto& each : rest) each.get();
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_EQ(calls[3].keys, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(calls[3].deadline, clock.now() + 1s);
}

TEST_F(RateGroupsTest, WhoHasLessTimeThanTheFirstGoesAlone) {
  fill();
  auto first = ask("a");
  ASSERT_TRUE(clock.awaitWaiters(1));
  auto hasty = ask("hasty", 10ms);
  ASSERT_TRUE(clock.awaitWaiters(2));
  clock.advance(10ms);
  awaitCalls(4);
  EXPECT_EQ(calls[3].keys, std::vector<std::string>{"hasty"});
  open();
  hasty.get();
  first.get();
}

TEST_F(RateGroupsTest, WhoHasMuchMoreTimeThanTheFirstIsNotEndedByIt) {
  fill();
  auto hasty = ask("hasty", 10ms);
  ASSERT_TRUE(clock.awaitWaiters(1));
  auto patient = ask("patient");
  ASSERT_TRUE(clock.awaitWaiters(2));
  auto next = ask("next");
  ASSERT_TRUE(clock.awaitWaiters(3));
  clock.advance(5ms);
  awaitCalls(4);
  EXPECT_EQ(calls[3].keys, std::vector<std::string>{"hasty"});
  open();
  for (auto* each : {&hasty, &patient, &next}) each->get();
  ASSERT_EQ(calls.size(), 5U);
  EXPECT_EQ(calls[4].keys, (std::vector<std::string>{"patient", "next"}));
  EXPECT_EQ(calls[4].deadline, clock.now() + 1s - 5ms);
}

TEST_F(RateGroupsTest, NobodyLosesMoreThanHalfOfItsTimeByWaitingForTheOthers) {
  fill();
  auto first = ask("a", 10ms);
  ASSERT_TRUE(clock.awaitWaiters(1));
  clock.advance(4ms);
  auto second = ask("b", 10ms);
  ASSERT_TRUE(clock.awaitWaiters(2));
  clock.advance(1ms);
  awaitCalls(4);
  EXPECT_EQ(calls[3].keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(calls[3].deadline, clock.now() + 5ms);
  open();
  first.get();
  second.get();
}

TEST_F(RateGroupsTest, NoCallIsForMoreThan64) {
  fill();
  std::vector<std::future<void>> rest;
  for (std::size_t caller = 0; caller < 70; ++caller) {
    rest.push_back(ask(std::to_string(caller)));
    ASSERT_TRUE(clock.awaitWaiters(rest.size()));
  }
  open();
  for (auto& each : rest) each.get();
  ASSERT_EQ(calls.size(), 5U);
  EXPECT_EQ(std::max(calls[3].keys.size(), calls[4].keys.size()), 64U);
  EXPECT_EQ(calls[3].keys.size() + calls[4].keys.size(), 70U);
}

TEST_F(RateGroupsTest, NobodyJoinsAFullCallWhoseLeaderHasFoundNoPlace) {
  fill();
  std::vector<std::future<void>> rest;
  const auto come = [&](std::size_t count, std::size_t others) {
    for (std::size_t caller = 0; caller < count; ++caller) {
      rest.push_back(ask(std::to_string(caller)));
      ASSERT_TRUE(clock.awaitWaiters(rest.size() + others));
    }
  };
  come(1, 0);
  auto hasty = ask("hasty", 10ms);
  ASSERT_TRUE(clock.awaitWaiters(2));
  come(63, 1);
  // Wakes both who wait for a place; the hasty one alone takes one.
  clock.advance(5ms);
  awaitCalls(4);
  come(6, 0);
  open();
  hasty.get();
  for (auto& each : rest) each.get();
  for (const Call& each : calls) EXPECT_LE(each.keys.size(), 64U);
}

TEST_F(RateGroupsTest, ABadKeyIsItsOwnCallersMatterAndAnOutageEverybodys) {
  fill();
  auto good = ask("good");
  ASSERT_TRUE(clock.awaitWaiters(1));
  auto bad = ask("bad");
  ASSERT_TRUE(clock.awaitWaiters(2));
  open();
  good.get();
  EXPECT_THROW(bad.get(), ConfigError);
  EXPECT_THROW(ask("outage").get(), StoreUnavailable);
  ask("good").get();
}

}  // namespace
}  // namespace lockkeeper::redis

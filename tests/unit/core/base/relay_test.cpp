#include "base/relay.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>

#include "lockkeeper/testing/fake_clock.h"

namespace lockkeeper::detail {
namespace {

using namespace std::chrono_literals;

class RelayTest : public ::testing::Test {
 protected:
  RelayTest() {
    const std::lock_guard held(mutex_);
    relay_.start(std::make_shared<int>());
  }
  ~RelayTest() override {
    std::unique_lock held(mutex_);
    relay_.stop();
    relay_.join(held, Instant::max());
  }

  void wakeUpAt(Instant when) {
    const std::lock_guard held(mutex_);
    relay_.wakeUpAt(when);
  }

  testing::FakeClock clock_;
  const Instant start_ = clock_.now();
  std::mutex mutex_;
  Instant due_ = Instant::max();
  int done_ = 0;
  Relay relay_{mutex_,
               clock_,
               1,
               {.due = [this] { return due_; },
                .doIt =
                    [this](auto&) {
                      ++done_;
                      due_ = Instant::max();
                    },
                .last = [](auto&) {}}};
};

// A lock that was released before the thread has looked. Otherwise each of many short locks would wake it up.
TEST_F(RelayTest, LooksWhenItWasAskedToAlthoughNothingIsDueAnyMore) {
  ASSERT_TRUE(clock_.awaitWakeUpAt(Instant::max()));
  wakeUpAt(start_ + 10s);
  ASSERT_TRUE(clock_.awaitWakeUpAt(start_ + 10s));
  EXPECT_FALSE(relay_.sleepsBeyond(start_ + 11s));
  clock_.advance(10s);
  ASSERT_TRUE(clock_.awaitWakeUpAt(Instant::max()));
  EXPECT_TRUE(relay_.sleepsBeyond(start_ + 11s));
  EXPECT_EQ(done_, 0);
}

TEST_F(RelayTest, IsNotAskedByThoseThatFallDueAfterSomebodyElse) {
  ASSERT_TRUE(clock_.awaitWakeUpAt(Instant::max()));
  const std::lock_guard held(mutex_);
  relay_.wakeUpAt(start_ + 10s);
  // Although the thread has not looked yet: it waits for the mutex.
  EXPECT_FALSE(relay_.sleepsBeyond(start_ + 10s));
  EXPECT_TRUE(relay_.sleepsBeyond(start_ + 9s));
}

TEST_F(RelayTest, DoesWhatFallsDueSoonerThanItWasAskedTo) {
  ASSERT_TRUE(clock_.awaitWakeUpAt(Instant::max()));
  wakeUpAt(start_ + 10s);
  ASSERT_TRUE(clock_.awaitWakeUpAt(start_ + 10s));
  {
    const std::lock_guard held(mutex_);
    due_ = start_ + 5s;
    relay_.wakeUpAt(due_);
  }
  ASSERT_TRUE(clock_.awaitWakeUpAt(start_ + 5s));
  clock_.advance(5s);
  ASSERT_TRUE(clock_.awaitWakeUpAt(Instant::max()));
  const std::lock_guard held(mutex_);
  EXPECT_EQ(done_, 1);
}

}  // namespace
}  // namespace lockkeeper::detail

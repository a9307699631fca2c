#include "lockkeeper/stream/shared_poll.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "lockkeeper/testing/fake_clock.h"

namespace lockkeeper {
namespace {

using namespace std::chrono_literals;

/// How a thread that waits leaves.
enum class End { served, stopped, timedOut, failed };

/// Some threads that wait for the same source, which a test plays.
class Waiters {
 public:
  static constexpr std::size_t count = 3;

  explicit Waiters(testing::FakeClock& clock) : clock_(clock), poll_(clock) {}

  /// Lets the next thread wait, for `time`; returns when it polls, or sleeps.
  void add(std::size_t index, std::chrono::nanoseconds time) {
    Member& member = members_[index];
    member.until = clock_.now() + time;
    member.thread = std::jthread([this, &member] { run(member); });
    await([&] { return member.checks > 0; });
  }

  /// Returns when the thread has left.
  void end(std::size_t index, End how) {
    Member& member = members_[index];
    if (how == End::timedOut) {
      clock_.advance(member.until - clock_.now());
      const SharedPoll::Lock lock(poll_);
      poll_.interrupt();  // that the fake clock has moved, poll(2) does not know
    } else {
      const SharedPoll::Lock lock(poll_);
      member.end = how;
      member.polls ? poll_.interrupt() : poll_.wake(member.waiter);
    }
    await([&] { return member.left.has_value(); });
    EXPECT_EQ(member.left, how);
  }

  /// Whether one of those who wait polls, in the end.
  bool somebodyPolls() {
    return await([&] { return poll_.polling(); });
  }

  int checksOf(std::size_t index) {
    const SharedPoll::Lock lock(poll_);
    return members_[index].checks;
  }
  bool polls(std::size_t index) {
    const SharedPoll::Lock lock(poll_);
    return members_[index].polls;
  }
  bool wasAlone() const { return alone_; }

 private:
  struct Member {
    SharedPoll::Waiter waiter{};
    Instant until{};
    std::optional<End> end{};   // that it is to see
    std::optional<End> left{};  // how it has left
    int checks = 0;             // whether it is done
    bool polls = false;
    std::jthread thread{};
  };

  void run(Member& self) {
    SharedPoll::Lock lock(poll_);
    const auto done = [&] {
      ++self.checks;
      if (self.end == End::failed) throw std::runtime_error("no memory");
      return self.end.has_value();
    };
    const auto pollOnce = [&] {
      alone_ = alone_ && std::ranges::none_of(members_, &Member::polls);
      self.polls = true;
      lock.unlock();
      std::array<pollfd, 1> own{};
      poll_.poll(own, self.until);
      lock.lock();
      self.polls = false;
      if (self.end == End::failed) throw std::runtime_error("no memory");
      return clock_.now();
    };
    try {
      poll_.wait(lock, self.waiter, self.until, done, pollOnce);
      self.left = self.end.value_or(End::timedOut);
    } catch (const std::runtime_error&) {
      self.left = End::failed;
    }
  }

  template <class Condition>
  bool await(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (true) {
      {
        const SharedPoll::Lock lock(poll_);
        if (condition()) return true;
      }
      if (std::chrono::steady_clock::now() > end) break;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "nothing happens";
    return false;
  }

  testing::FakeClock& clock_;
  SharedPoll poll_;
  bool alone_ = true;
  std::array<Member, count> members_{};
};

TEST(SharedPoll, InWhateverOrderAndForWhateverReasonTheyLeaveTheOthersArePolledFor) {
  constexpr std::array ends = {End::served, End::stopped, End::timedOut, End::failed};
  std::array<std::size_t, Waiters::count> order = {0, 1, 2};
  int orders = 0;
  do {
    for (std::size_t reasons = 0; reasons < 64; ++reasons, ++orders) {
      testing::FakeClock clock;
      Waiters waiters(clock);
      // Who leaves first has the nearest deadline.
      for (std::size_t index = 0; index < order.size(); ++index) {
        waiters.add(index, 1h * (1 + (std::ranges::find(order, index) - order.begin())));
      }
      for (std::size_t left = 0; left < order.size(); ++left) {
        ASSERT_TRUE(waiters.somebodyPolls()) << orders;
        waiters.end(order[left], ends[(reasons >> (2 * left)) % ends.size()]);
      }
      ASSERT_TRUE(waiters.wasAlone()) << orders;
      ASSERT_FALSE(HasFailure()) << orders;
    }
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(orders, 6 * 64);
}

TEST(SharedPoll, WhoSleepsIsNotWokenForWhatServesAnother) {
  testing::FakeClock clock;
  Waiters waiters(clock);
  for (std::size_t index = 0; index < Waiters::count; ++index) waiters.add(index, 1h);
  ASSERT_TRUE(clock.awaitWaiters(2));
  EXPECT_TRUE(waiters.polls(0));
  waiters.end(1, End::served);
  EXPECT_TRUE(waiters.polls(0));
  EXPECT_EQ(waiters.checksOf(2), 1);
  waiters.end(0, End::served);
  waiters.end(2, End::served);
}

TEST(SharedPoll, OnlyOneIsWokenToPollNext) {
  testing::FakeClock clock;
  Waiters waiters(clock);
  for (std::size_t index = 0; index < Waiters::count; ++index) waiters.add(index, 1h);
  ASSERT_TRUE(clock.awaitWaiters(2));
  waiters.end(0, End::served);
  ASSERT_TRUE(waiters.somebodyPolls());
  const std::size_t next = waiters.polls(1) ? 1 : 2;
  const std::size_t last = 3 - next;
  waiters.end(next, End::served);
  ASSERT_TRUE(waiters.somebodyPolls());
  EXPECT_EQ(waiters.checksOf(last), 2) << "before it slept, and when it was woken to poll";
  waiters.end(last, End::served);
}

TEST(SharedPoll, WhoIsDoneAtOnceDoesNotPollAndWhoseTimeIsOverPollsOnce) {
  testing::FakeClock clock;
  SharedPoll poll(clock);
  SharedPoll::Lock lock(poll);
  SharedPoll::Waiter self;
  int polls = 0;
  const auto pollOnce = [&] {
    ++polls;
    return clock.now();
  };
  poll.wait(
      lock, self, clock.now() + 1h, [] { return true; }, pollOnce);
  EXPECT_EQ(polls, 0);
  poll.wait(
      lock, self, clock.now() - 1h, [] { return false; }, pollOnce);
  EXPECT_EQ(polls, 1);
  EXPECT_FALSE(poll.polling());
}

TEST(SharedPoll, AnInterruptIsSeenByTheNextPollOnce) {
  testing::FakeClock clock;
  SharedPoll poll(clock);
  SharedPoll::Lock lock(poll);
  SharedPoll::Waiter self;
  int polls = 0;
  const auto pollOnce = [&] {
    std::array<pollfd, 1> own{};
    poll.interrupt();
    lock.unlock();
    poll.poll(own, Instant::max());
    EXPECT_NE(own[0].revents, 0);
    poll.poll(own, clock.now());
    EXPECT_EQ(own[0].revents, 0) << "it was read";
    lock.lock();
    return ++polls == 2 ? Instant::max() : clock.now();
  };
  poll.wait(
      lock, self, clock.now() + 1h, [] { return false; }, pollOnce);
  EXPECT_EQ(polls, 2);
}

class ClockThatFails final : public Clock {
 public:
  Instant now() const noexcept override { return systemClock()->now(); }
  void wait(std::unique_lock<std::mutex>&, std::condition_variable&, Instant) override {
    throw std::runtime_error("no memory");
  }
};

TEST(SharedPoll, WhoseSleepFailsIsNotChosenToPollNext) {
  ClockThatFails clock;
  SharedPoll poll(clock);
  SharedPoll::Lock lock(poll);
  SharedPoll::Waiter polls;
  const auto never = [] { return false; };
  const auto pollOnce = [&] {
    const auto sleeps = std::make_unique<SharedPoll::Waiter>();
    const auto pollsToo = [] {
      ADD_FAILURE() << "somebody polls already";
      return Instant::max();
    };
    EXPECT_THROW(poll.wait(lock, *sleeps, Instant::max(), never, pollsToo), std::runtime_error);
    return Instant::max();
  };
  poll.wait(lock, polls, Instant::max(), never, pollOnce);
  EXPECT_FALSE(poll.polling());
}

}  // namespace
}  // namespace lockkeeper

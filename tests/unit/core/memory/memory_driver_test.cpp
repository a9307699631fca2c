#include "lockkeeper/memory/memory_driver.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/store/shared_records.h"
#include "lockkeeper/store/value_store.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/fake_random.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
using lockkeeper::testing::FakeRandom;
namespace {

using namespace std::chrono_literals;

/// A clock in which one caller stays, with whatever mutex it has taken before it asked for the time.
class HeldClock final : public Clock {
 public:
  Instant now() const noexcept override {
    if (holdsNext.exchange(false)) {
      inside.set_value();
      leave.get_future().wait();
    }
    return Instant{1h};
  }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant) override {
    wakeUp.wait(held);
  }

  mutable std::atomic<bool> holdsNext = false;
  mutable std::promise<void> inside;
  mutable std::promise<void> leave;
};

/// Forks while another thread is inside `call`. The exit status of the child, which makes the same call: 0
/// when that is refused there; -1 when it does not return.
int forkedWithin(HeldClock& clock, const std::function<void()>& call) {
  clock.holdsNext = true;
  std::thread other(call);
  clock.inside.get_future().wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    try {
      call();
    } catch (const ForkedError&) {
      _exit(0);
    } catch (...) {
    }
    _exit(1);
  }
  clock.leave.set_value();
  other.join();
  int status = -1;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(MemoryDriver, AForkedChildDoesNotWaitForThreadsThatAreNotThere) {
  FakeRandom random(1);
  const Claim claim{"order", Token::generate(random), "tester"};
  const RateLaw law{.limit = 1, .period = 1000};
  const std::function<void(MemoryDriver&)> calls[] = {
      [&](MemoryDriver& store) {
        (void)store.acquire({claim, 1s, {}});
      },
      [&](MemoryDriver& store) {
        (void)store.acquireWaiting({claim, 1s, {}}, 1s, {});
      },
      [&](MemoryDriver& store) {
        RateCharge charge{.key = "sms", .law = &law, .cost = 1};
        store.take({&charge, 1}, {});
      },
      [](MemoryDriver& store) {
        (void)capability<SharedRecords>(store)->write("table", "name", "text", 1s, {}, {});
      }};
  int number = 0;
  for (const auto& call : calls) {
    const auto clock = std::make_shared<HeldClock>();
    MemoryDriver store(clock);
    EXPECT_EQ(forkedWithin(*clock, [&] { call(store); }), 0) << "call " << number;
    ++number;
  }
}

/// How often somebody began to wait.
class CountingClock final : public Clock {
 public:
  Instant now() const noexcept override { return clock.now(); }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    ++waits;
    clock.wait(held, wakeUp, until);
  }

  FakeClock clock;
  std::atomic<int> waits = 0;
};

TEST(MemoryDriver, AHandOverWakesOnlyThoseWhoAreServed) {
  constexpr int many = 20;
  const auto clock = std::make_shared<CountingClock>();
  MemoryDriver store(clock);
  FakeRandom random(1);
  Claim holder{"order", Token::generate(random), "tester"};
  ASSERT_TRUE(std::holds_alternative<Granted>(store.acquire({holder, 1h, {}})));
  std::vector<Claim> claims;
  std::vector<std::future<AcquireResult>> waiting;
  for (int number = 0; number < many; ++number) {
    claims.push_back({"order", Token::generate(random), "tester"});
    waiting.push_back(std::async(std::launch::async, [&store, claim = claims.back()] {
      return store.acquireWaiting({claim, 1h, {}}, 1min, {});
    }));
    ASSERT_TRUE(clock->clock.awaitWaiters(waiting.size()));
  }
  for (std::size_t number = 0; number < waiting.size(); ++number) {
    EXPECT_EQ(store.release(holder, {}), ReleaseOutcome::released);
    EXPECT_TRUE(std::holds_alternative<Granted>(waiting[number].get()));
    ASSERT_TRUE(clock->clock.awaitWaiters(waiting.size() - number - 1));
    holder = claims[number];
  }
  EXPECT_LT(clock->waits, 2 * many) << "many, and whoever wakes up by itself";
}

// Whose lease ends before that of the one before it, so that those behind it must look earlier.
TEST(MemoryDriver, AShorterLeaseOfTheNextHolderIsSeenByThoseBehindIt) {
  const auto clock = std::make_shared<FakeClock>();
  MemoryDriver store(clock);
  FakeRandom random(1);
  const Claim first{"order", Token::generate(random), "tester"};
  ASSERT_TRUE(std::holds_alternative<Granted>(store.acquire({first, 1h, {}})));
  const auto wait = [&](std::chrono::milliseconds ttl) {
    const Claim claim{"order", Token::generate(random), "tester"};
    return std::async(std::launch::async, [&store, claim, ttl] {
      return store.acquireWaiting({claim, ttl, {}}, 2h, {});
    });
  };
  auto second = wait(1s);
  ASSERT_TRUE(clock->awaitWaiters(1));
  auto third = wait(1s);
  ASSERT_TRUE(clock->awaitWaiters(2));
  EXPECT_EQ(store.release(first, {}), ReleaseOutcome::released);
  EXPECT_TRUE(std::holds_alternative<Granted>(second.get()));
  EXPECT_TRUE(clock->awaitWakeUpAt(clock->now() + 1s, 5s));
  clock->advance(1s);
  if (third.wait_for(5s) != std::future_status::ready) clock->advance(2h);  // it gives up
  EXPECT_TRUE(std::holds_alternative<Granted>(third.get()));
}

}  // namespace
}  // namespace lockkeeper::test

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "faulty_driver.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/fake_random.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
using lockkeeper::testing::FakeRandom;

using namespace std::chrono_literals;

/// Writes down what it hears.
class RecordingListener final : public Listener {
 public:
  void on(const Event& event) override {
    if (event.kind == EventKind::gaveUp || event.kind == EventKind::taskEnded) return;
    std::string what = toString(event.kind);
    if (event.kind == EventKind::lost) what.append(": ").append(toString(event.loss));
    if (event.kind == EventKind::attemptFailed) what = std::string("failed: ") + toString(*event.error);
    note(what, event.key);
  }

  std::vector<std::string> heard() const {
    const std::lock_guard guard(mutex_);
    return heard_;
  }
  void await(const std::string& event) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return std::find(heard_.begin(), heard_.end(), event) != heard_.end(); });
  }

  /// Until `count` events begin with `what`.
  void await(const std::string& what, std::ptrdiff_t count) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] {
      return std::ranges::count_if(heard_, [&](const auto& event) { return event.starts_with(what); }) >=
             count;
    });
  }

 private:
  void note(const std::string& event, std::string_view key) {
    const std::lock_guard guard(mutex_);
    heard_.push_back(event + " " + std::string(key));
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;
};

/// Gives what it hears to a function.
class Hearing final : public Listener {
 public:
  explicit Hearing(std::function<void(const Event& event)> tell) : tell_(std::move(tell)) {}
  void on(const Event& event) override { tell_(event); }

 private:
  const std::function<void(const Event& event)> tell_;
};

/// A manager on the embedded store, behind a network that fails on demand, on a clock that the test moves.
class ManagerFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t seed = 7;
  /// A manager's renewer and expiry thread wait on the clock from the first lock on.
  static constexpr std::size_t managerThreads = 2;

  ManagerOptions options(std::uint64_t randomSeed = seed) {
    ManagerOptions made;
    made.owner = "tester";
    made.environment = {clock, std::make_shared<FakeRandom>(randomSeed), listener};
    return made;
  }

  /// Likewise, also heard by a function.
  ManagerOptions heardBy(std::uint64_t randomSeed, std::function<void(const Event& event)> tell) {
    ManagerOptions made = options(randomSeed);
    made.environment.listener = std::make_shared<ListenerGroup>(
        std::vector<std::shared_ptr<Listener>>{listener, std::make_shared<Hearing>(std::move(tell))});
    return made;
  }

  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  std::shared_ptr<RecordingListener> listener = std::make_shared<RecordingListener>();
  std::shared_ptr<MemoryDriver> store = std::make_shared<MemoryDriver>(clock);
  std::shared_ptr<FaultyDriver> network = std::make_shared<FaultyDriver>(store);
  LockManager manager{network, options()};
  /// Another process, as far as the store can tell.
  LockManager other{store, options(seed + 1)};
};

}  // namespace lockkeeper::test

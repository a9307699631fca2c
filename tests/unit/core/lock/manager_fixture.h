#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "faulty_driver.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/fake_random.h"

namespace lockkeeper::testing {

using namespace std::chrono_literals;

/// Writes down what it hears.
class RecordingListener final : public Listener {
 public:
  void acquired(std::string_view key, std::chrono::nanoseconds, std::optional<Fence>) override {
    note("acquired", key);
  }
  void timedOut(std::string_view key, std::chrono::nanoseconds) override { note("timedOut", key); }
  void renewed(std::string_view key) override { note("renewed", key); }
  void suspect(std::string_view key, std::chrono::nanoseconds) override { note("suspect", key); }
  void lost(std::string_view key, LossReason reason) override {
    note(std::string("lost: ") + toString(reason), key);
  }
  void released(std::string_view key, std::chrono::nanoseconds) override { note("released", key); }
  void storeFailed(std::string_view key, ErrorCode code, std::string_view) override {
    note(std::string("failed: ") + toString(code), key);
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

/// A manager on the embedded store, behind a network that fails on demand, on a clock that the test moves.
class ManagerFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t seed = 7;
  /// A manager's renewer and watchman wait on the clock from the first lock on.
  static constexpr std::size_t managerThreads = 2;

  ManagerOptions options(std::uint64_t randomSeed = seed) {
    ManagerOptions made;
    made.owner = "tester";
    made.environment = {clock, std::make_shared<FakeRandom>(randomSeed), listener};
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

}  // namespace lockkeeper::testing

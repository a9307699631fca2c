#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lockkeeper/driver/clock.h"

namespace lockkeeper::detail {

/// Has keys looked at when their prefetched units may lie idle, on a thread that starts with the first of
/// them. When no thread can be started, the next call tries again. Thread-safe.
class UnitWatch {
 public:
  /// Called on the thread for keys whose time has come and, when `closing`, once for all that are left. May
  /// call watch().
  using Look = std::function<void(const std::vector<std::string>& keys, bool closing)>;

  UnitWatch(std::shared_ptr<Clock> clock, Look look) : clock_(std::move(clock)), look_(std::move(look)) {}

  /// Has `key` looked at once, at `at`.
  void watch(std::string_view key, Instant at);

  /// Whether so many keys are watched that the thread may fall behind: watch no new ones then.
  bool isFull();

  /// Ends the thread after its last look.
  void close();

 private:
  static constexpr std::size_t mostKeys = 4096;

  void startThread();
  void run();
  std::vector<std::string> takeDue(Instant now);

  const std::shared_ptr<Clock> clock_;
  const Look look_;
  std::mutex mutex_;
  std::multimap<Instant, std::string> looks_;
  std::size_t beingLookedAt_ = 0;
  bool closing_ = false;
  std::condition_variable wakeUp_;
  std::thread thread_;
};

}  // namespace lockkeeper::detail

#pragma once

#include <condition_variable>
#include <deque>
#include <vector>

namespace lockkeeper {

/// Condition variables that are used again and never die before the pool does, so that one may be notified
/// when its waiter may have left already. Guarded by its owner's mutex.
class WakerPool {
 public:
  std::condition_variable& take() {
    if (free_.empty()) {
      free_.reserve(all_.size() + 1);  // so that giving back allocates nothing
      return all_.emplace_back();
    }
    std::condition_variable& waker = *free_.back();
    free_.pop_back();
    return waker;
  }
  void recycle(std::condition_variable& waker) noexcept { free_.push_back(&waker); }

 private:
  std::deque<std::condition_variable> all_;
  std::vector<std::condition_variable*> free_;
};

}  // namespace lockkeeper

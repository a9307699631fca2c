#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "wire/mux/posted.h"

namespace lockkeeper::redis {

/// Holds a mutex, and does after it has let go of it what must not be done before: it notifies, since who is
/// notified earlier wakes up only to wait for the mutex, and in the end tells what became of posted commands.
class WakingLock {
 public:
  explicit WakingLock(std::mutex& mutex) : lock_(mutex) {}
  WakingLock(const WakingLock&) = delete;
  WakingLock& operator=(const WakingLock&) = delete;
  ~WakingLock() {
    if (lock_.owns_lock()) unlock();
    while (const auto posted = ended_.pop()) posted->ended();
  }

  void lock() { lock_.lock(); }

  void unlock() {
    lock_.unlock();
    notify();
  }

  /// Notifies at unlock(); at once when there is no room to remember it.
  void wake(std::condition_variable& waker) {
    if (count_ == due_.size()) return waker.notify_one();
    due_[count_++] = &waker;
  }

  /// Tells it when all is over.
  void tell(std::unique_ptr<Posted> posted) { ended_.push(std::move(posted)); }

  /// For waiting, which lets go of the mutex by itself: notifies now.
  std::unique_lock<std::mutex>& forWaiting() {
    notify();
    return lock_;
  }

 private:
  void notify() {
    for (std::size_t index = 0; index < count_; ++index) due_[index]->notify_one();
    count_ = 0;
  }

  std::unique_lock<std::mutex> lock_;
  std::array<std::condition_variable*, 64> due_;
  std::size_t count_ = 0;
  PostedList ended_;
};

}  // namespace lockkeeper::redis

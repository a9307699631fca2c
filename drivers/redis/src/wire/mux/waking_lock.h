#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

namespace lockkeeper::redis {

/// Condition variables that are used again and never die before the pool does, so that one may be notified
/// when its waiter may have left already. Guarded by its owner's mutex.
class WakerPool {
 public:
  std::condition_variable& take() {
    if (free_.empty()) return all_.emplace_back();
    std::condition_variable& waker = *free_.back();
    free_.pop_back();
    return waker;
  }
  void giveBack(std::condition_variable& waker) { free_.push_back(&waker); }

 private:
  std::deque<std::condition_variable> all_;
  std::vector<std::condition_variable*> free_;
};

/// Holds a mutex, and notifies after it has let go of it: who is notified earlier wakes up only to wait for
/// the mutex.
class WakingLock {
 public:
  explicit WakingLock(std::mutex& mutex) : lock_(mutex) {}
  WakingLock(const WakingLock&) = delete;
  WakingLock& operator=(const WakingLock&) = delete;
  ~WakingLock() {
    if (lock_.owns_lock()) unlock();
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
};

}  // namespace lockkeeper::redis

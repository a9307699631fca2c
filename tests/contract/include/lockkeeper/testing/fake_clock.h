#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <vector>

#include "lockkeeper/base/clock.h"

namespace lockkeeper::testing {

/// A clock that moves only by advance(), so that a test decides when time passes and asserts exact delays.
/// Thread-safe. No wake-up is lost: a thread that is about to wait when advance() is called either sees the
/// new time or is woken.
class FakeClock final : public Clock {
 public:
  /// It begins at `start` and stands still.
  explicit FakeClock(Instant start = Instant{std::chrono::hours{1}}) : now_(start) {}

  Instant now() const noexcept override {
    std::lock_guard guard(mutex_);
    return now_;
  }

  /// As setWallClock() has set it; at first, now() counted from 1970.
  WallTime wallNow() const noexcept override {
    std::lock_guard guard(mutex_);
    return std::chrono::floor<std::chrono::milliseconds>(WallTime{} + wallOffset_ + now_.time_since_epoch());
  }

  /// Sets the wall clock. It goes on from there with advance(); now() stays as it is, and nobody is woken.
  void setWallClock(WallTime now) {
    std::lock_guard guard(mutex_);
    wallOffset_ = now.time_since_epoch() - now_.time_since_epoch();
  }

  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    std::list<Waiter>::iterator self;
    {
      std::lock_guard guard(mutex_);
      if (until <= now_) return;
      self = waiters_.insert(waiters_.end(), {held.mutex(), &wakeUp, until, 0});
      changed_.notify_all();
    }
    wakeUp.wait(held);
    // advance() may still be about to use this waiter's mutex and condition, which live only as long as this
    // call.
    held.unlock();
    {
      std::unique_lock guard(mutex_);
      changed_.wait(guard, [&] { return self->inUse == 0; });
      waiters_.erase(self);
    }
    held.lock();
  }

  /// Moves time on and wakes the threads whose time has come. The caller must own no mutex that a waiter
  /// waits with.
  void advance(std::chrono::nanoseconds length) {
    std::vector<std::list<Waiter>::iterator> due;
    {
      std::lock_guard guard(mutex_);
      now_ += length;
      for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
        if (waiter->until > now_) continue;
        ++waiter->inUse;
        due.push_back(waiter);
      }
    }
    for (auto waiter : due) {
      // A waiter owns this mutex until it really waits: taking it here is what keeps its wake-up from being
      // lost.
      { std::lock_guard guard(*waiter->mutex); }
      waiter->wakeUp->notify_all();
      std::lock_guard guard(mutex_);
      --waiter->inUse;
      changed_.notify_all();
    }
  }

  /// How many threads wait for a time that has not come yet.
  std::size_t waiters() const { return wakeUps().size(); }

  /// The times that they wait for, earliest first: now() subtracted, the exact delays that the code asked
  /// for.
  std::vector<Instant> wakeUps() const {
    std::lock_guard guard(mutex_);
    return futureWakeUps();
  }

  /// Blocks until at least `count` threads wait; false when that has not happened after `bound` of real time.
  bool awaitWaiters(std::size_t count, std::chrono::milliseconds bound = std::chrono::seconds{20}) {
    std::unique_lock guard(mutex_);
    return changed_.wait_for(guard, bound, [&] { return futureWakeUps().size() >= count; });
  }

  /// Likewise, until some thread waits for exactly `when`.
  bool awaitWakeUpAt(Instant when, std::chrono::milliseconds bound = std::chrono::seconds{20}) {
    std::unique_lock guard(mutex_);
    return changed_.wait_for(guard, bound, [&] {
      return std::any_of(waiters_.begin(), waiters_.end(),
                         [&](const Waiter& waiter) { return waiter.until == when && when > now_; });
    });
  }

 private:
  struct Waiter {
    std::mutex* mutex;
    std::condition_variable* wakeUp;
    Instant until;
    int inUse;  // By calls of advance() that have not finished with it.
  };

  std::vector<Instant> futureWakeUps() const {
    std::vector<Instant> times;
    for (const Waiter& waiter : waiters_) {
      if (waiter.until > now_) times.push_back(waiter.until);
    }
    std::sort(times.begin(), times.end());
    return times;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Instant now_;
  std::chrono::nanoseconds wallOffset_{};
  std::list<Waiter> waiters_;
};

}  // namespace lockkeeper::testing

#pragma once

#include <poll.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/internal/waker_pool.h"

namespace lockkeeper {

/// Lets threads that wait for the same connections share one poll, so that no background thread is needed
/// (the leader/followers pattern). One of them polls for all until its own deadline, and the others sleep.
/// When it leaves, with or without a result, one of the others polls.
///
/// Contains the mutex that guards the shared state. Hold a Lock for every call except poll().
class SharedPoll {
 public:
  /// Holds the mutex. Notifies the woken threads after it has unlocked the mutex: if it did so earlier, they
  /// would only wait for the mutex.
  class Lock {
   public:
    explicit Lock(SharedPoll& all) : all_(all), lock_(all.mutex_) {}
    Lock(SharedPoll& all, std::try_to_lock_t tryOnly) : all_(all), lock_(all.mutex_, tryOnly) {}
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() {
      if (owns()) unlock();
    }

    bool owns() const { return lock_.owns_lock(); }
    void lock() { lock_.lock(); }
    void unlock();

   private:
    friend class SharedPoll;

    SharedPoll& all_;
    std::unique_lock<std::mutex> lock_;
  };

  /// A waiting thread. Must not be destroyed while it waits.
  class Waiter {
    friend class SharedPoll;
    std::condition_variable* waker_ = nullptr;  // while it sleeps
  };

  /// Throws std::system_error. `clock` must outlive it.
  explicit SharedPoll(Clock& clock);
  SharedPoll(const SharedPoll&) = delete;
  SharedPoll& operator=(const SharedPoll&) = delete;
  ~SharedPoll();

  /// Blocks until `done()` is true, or until `until`. `pollOnce()` polls once and handles what has arrived.
  /// It unlocks `lock` while it blocks, and has locked it again when it returns or throws. Unless `done()` is
  /// true at first, this thread or another one calls it at least once. An exception of either function ends
  /// only this thread's wait.
  template <class Done, class PollOnce>
  void wait(Lock& lock, Waiter& self, Instant until, Done done, PollOnce pollOnce) {
    Departure departure{*this};
    while (!done()) {
      if (!polling_) {
        departure.polls = polling_ = true;
        while (pollOnce() < until && !done()) {
        }
        return;
      }
      if (sleep(lock, self, until) >= until) return;
    }
  }

  /// For `pollOnce`, without the mutex: calls poll(2) until `until`, or until interrupt(). The first element
  /// of `polled` is reserved for interrupts. After a failure, nothing is reported as ready.
  void poll(std::span<pollfd> polled, Instant until) const;

  /// Whether a thread is polling.
  bool polling() const { return polling_; }
  /// Makes poll() return: the set of connections has changed, or the polling thread may be done.
  void interrupt() const;

  /// Makes a sleeping waiter check whether it is done.
  void wake(Waiter& waiter) noexcept;
  void wakeAll() noexcept;

 private:
  /// A thread that leaves, even by an exception, wakes another one that polls for the rest.
  struct Departure {
    SharedPoll& all;
    bool polls = false;

    ~Departure() {
      if (polls) all.polling_ = false;
      all.passOn();
    }
  };

  Instant sleep(Lock& lock, Waiter& self, Instant until);
  void passOn() noexcept;
  void notifyLater(std::condition_variable& waker) noexcept;

  Clock& clock_;
  const int interrupts_;  // readable: poll() must return
  std::mutex mutex_;
  bool polling_ = false;
  std::vector<Waiter*> sleeping_;  // except those that were woken
  WakerPool wakers_;
  std::array<std::condition_variable*, 64> due_{};  // to be notified after the mutex is free
  std::size_t dueCount_ = 0;
};

/// For poll(2): the milliseconds from `now` until `until`.
int pollTime(Instant until, Instant now);

}  // namespace lockkeeper

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
/// (the leader/followers pattern): one of them polls for all until its own deadline, and the others sleep.
/// When it is served, or leaves for any other reason, one of the others polls next.
///
/// Contains the mutex that guards what the threads share. Every call except poll() needs it: hold a Lock.
class SharedPoll {
 public:
  /// Holds the mutex, and notifies those that were woken after it has let go of it: whoever is notified
  /// earlier only waits for the mutex.
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

  /// One that waits. Must not end while it does.
  class Waiter {
    friend class SharedPoll;
    std::condition_variable* waker_ = nullptr;  // while it sleeps
  };

  /// Throws std::system_error. `clock` must outlive it.
  explicit SharedPoll(Clock& clock);
  SharedPoll(const SharedPoll&) = delete;
  SharedPoll& operator=(const SharedPoll&) = delete;
  ~SharedPoll();

  /// Blocks until `done()`, or until `until`. `pollOnce()` polls and handles what has come, and returns when
  /// the poll was over. It lets go of `lock` while it blocks, and holds it again when it returns or throws.
  /// Unless `done()` is true at first, it is called at least once by this thread or by another one. What
  /// either of them throws ends the wait of this thread only.
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

  /// For `pollOnce`, without the mutex: poll(2) until `until`, or interrupt(). The first element of `polled`
  /// is used for the interrupts. After a failure nothing is reported as ready.
  void poll(std::span<pollfd> polled, Instant until) const;

  /// Whether a thread polls.
  bool polling() const { return polling_; }
  /// Makes poll() return, because what is to be polled, or whether the thread is done, has changed.
  void interrupt() const;

  /// Makes a waiter that sleeps check whether it is done.
  void wake(Waiter& waiter) noexcept;
  void wakeAll() noexcept;

 private:
  /// Whoever leaves, even by an exception, must not leave others asleep without one that polls.
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

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lockkeeper/base/clock.h"

namespace lockkeeper::detail {

/// A few threads that take turns at work that falls due. One of them waits for the next due time; before it
/// does the work, another one takes its place, so that long work delays nothing that falls due meanwhile. A
/// thread is started when it is needed, up to a bound. The owner's mutex guards this class: all calls need it
/// held, except sleepsBeyond().
class Relay {
 public:
  struct Work {
    /// When there is something to do.
    std::function<Instant()> due;
    /// Lets go of the mutex while it blocks. When there is no memory, it may throw std::bad_alloc, and is
    /// called again after a pause, if something is due then.
    std::function<void(std::unique_lock<std::mutex>& held)> doIt;
    /// Once, when all has stopped.
    std::function<void(std::unique_lock<std::mutex>& held)> last;
  };

  Relay(std::mutex& mutex, Clock& clock, std::size_t mostThreads, Work work);

  /// Starts the first thread, which keeps `owner` alive until it ends. Throws std::system_error when there is
  /// none to be had.
  void start(const std::shared_ptr<void>& owner);

  /// Something falls due at `when`, sooner than due() has said before.
  void wakeUpAt(Instant when);

  /// Whether wakeUpAt(when) is needed, because the threads may sleep longer than that. To be called after the
  /// change that makes due() return `when`. Needs no mutex.
  bool sleepsBeyond(Instant when) const { return when < sleepsUntil_.load(); }

  /// Lets the threads end.
  void stop();

  /// Waits for their end, until `until` at most; those that go on then are left to themselves. Not waited for
  /// is a thread that calls this itself. The second call does nothing.
  void join(std::unique_lock<std::mutex>& held, Instant until);

 private:
  void addThread();
  void run();
  bool awaitWork(std::unique_lock<std::mutex>& held);

  std::mutex& mutex_;
  Clock& clock_;
  const std::size_t mostThreads_;
  const Work work_;
  std::weak_ptr<void> owner_;
  std::vector<std::thread> threads_;
  std::size_t running_ = 0;
  std::size_t idle_ = 0;
  bool somebodyWaits_ = false;
  bool stopping_ = false;
  bool lastDone_ = false;
  std::atomic<Instant> sleepsUntil_ = Instant::max();  // max: nobody sleeps, due() will be asked
  Instant asked_ = Instant::max();                     // the soonest time of wakeUpAt(), until it is past
  std::condition_variable wakeUp_;                     // for the one that waits for the next due time
  std::condition_variable placeFree_;                  // for those that wait to take its place
  std::condition_variable pauseOver_;                  // for those that pause because memory was short
  std::condition_variable ended_;
};

}  // namespace lockkeeper::detail

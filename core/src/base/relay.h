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

/// A few threads that take turns at what falls due. One of them waits for it; before that one does the work,
/// another takes its place, so that work which takes long delays none that falls due meanwhile. A thread is
/// started when it is needed, up to a bound. Its owner's mutex guards it: all calls need it held, except
/// sleepsBeyond().
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

  /// Whether what falls due at `when` needs wakeUpAt(): it may have come too late for the last due(). To be
  /// asked after due() would have told of it; needs no mutex.
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
  std::atomic<Instant> sleepsUntil_ = Instant::max();  // the latest, while due() is not known
  Instant asked_ = Instant::max();                     // the soonest time of wakeUpAt(), until it is past
  std::condition_variable wakeUp_;                     // of the one that waits for what falls due
  std::condition_variable placeFree_;                  // of those that wait to be that one
  std::condition_variable pauseOver_;                  // of those that memory was too short for
  std::condition_variable ended_;
};

}  // namespace lockkeeper::detail

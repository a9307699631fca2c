#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "lockkeeper/export.h"
#include "lockkeeper/listener.h"
#include "lockkeeper/lock.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper {

namespace detail {
class TickLoop;
}

/// How one task is shared by the instances of a service. `atLeast` and `atMost` are ShedLock's lockAtLeastFor
/// and lockAtMostFor.
struct TaskOptions {
  /// The key of its lock. All instances give the same.
  std::string name{};

  /// The lock stays taken that long after the task has begun, even when the task is done, fails or its
  /// process dies earlier (unless the store frees the locks of a dead process at once, as GET_LOCK does): 0
  /// to 24 h. So a run begins only when that much time has passed since the last one began. Where all
  /// instances tick at the same times (each full hour, say), choose it longer than their clocks are apart and
  /// than a tick may come late, and shorter than the period: then no tick is run twice, and none is missed.
  /// Where each ticks at times of its own (every hour since it was started), there is one run in each period
  /// only when this is nearly as long as the period, shorter by what a tick may come late.
  std::chrono::milliseconds atLeast{0};

  /// How long the task may take: 10 ms and `atLeast` to 366 days. Choose it well above the longest good run.
  /// If it is not longer than `ttl`, it is the lease itself: the task's stop_token fires a tenth of it before
  /// the lease ends, and then another instance may run the task. If it is longer, the stop_token fires when
  /// it has passed; another instance may run the task when this run has returned, or `ttl` later at the
  /// latest. A task that goes on nevertheless is not protected.
  std::chrono::milliseconds atMost{std::chrono::minutes{10}};

  /// The lease of the lock, which is renewed while the task runs: when an instance has died, another one may
  /// run the task that much later. See leaseOf().
  std::chrono::milliseconds ttl{std::chrono::seconds{30}};
};

/// Throws std::invalid_argument that names the first option out of range.
LOCKKEEPER_CORE_EXPORT void checkOptions(const TaskOptions& options);

/// The lease that a task's lock is taken for: `ttl`, at most `atMost`, at least `atLeast`.
LOCKKEEPER_CORE_EXPORT std::chrono::milliseconds leaseOf(const TaskOptions& options) noexcept;

/// Work that only one instance of a service runs at a time, and not again within TaskOptions::atLeast. This
/// is not a scheduler: something in each instance, such as a ScheduledTask, calls run() at each tick.
/// Thread-safe; runs of one object never overlap, since the lock excludes them like those of others. Its work
/// may destroy it: the run then goes on to its end.
class LOCKKEEPER_CORE_EXPORT ExclusiveTask {
 public:
  /// The work gets the lock, for its fence and valid(), and a token that fires when it must end: the lock is
  /// lost, `atMost` has passed, or the caller of run() wants it.
  using Work = std::function<void(const Lock& lock, std::stop_token stop)>;

  /// Throws as checkOptions() does. The manager's listener hears of each run (EventKind::taskEnded).
  ExclusiveTask(std::shared_ptr<LockManager> manager, TaskOptions options, Work work);

  /// Runs the work here and now, unless another instance has the lock. Throws only what the work throws,
  /// after the lock was released. Blocks for the work, and for one attempt at the store before and after it;
  /// never for `atLeast`.
  TaskOutcome run(std::stop_token stop = {}) const;

  /// TaskOptions::name.
  const std::string& name() const noexcept { return parts_->options.name; }

 private:
  friend class detail::TickLoop;
  /// As run(), but tells nobody what it returns; `failure` is why the store failed, if it did.
  TaskOutcome attempt(const std::stop_token& stop, Instant began, std::string& failure) const;
  TaskOutcome work(Lock& lock, Instant began, const std::stop_token& stop) const;
  void tell(TaskOutcome outcome, Instant began, std::string_view text = {}) const;

  struct Parts {
    std::shared_ptr<LockManager> manager;
    TaskOptions options;
    Work work;
  };
  const std::shared_ptr<const Parts> parts_;
};

}  // namespace lockkeeper

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

  /// The least time between the beginnings of two runs: 0 to 24 h. The lock stays taken that long after a run
  /// has begun, even if the task finishes or fails earlier, or its process dies (unless the store frees the
  /// locks of a dead process at once, as GET_LOCK does). If all instances tick at the same times, such as
  /// each full hour, choose a time that is longer than the difference of their clocks plus the delay of a
  /// tick, and shorter than the period: then no tick is run twice, and none is missed. If each instance ticks
  /// at times of its own, such as every hour since it was started, choose a time that is shorter than the
  /// period by the delay of a tick: then there is one run in each period.
  std::chrono::milliseconds atLeast{0};

  /// How long a run may take: at least 10 ms and `atLeast`, at most 366 days. Choose it well above the
  /// longest good run. If it is not longer than `ttl`, it is the length of the lease: the task's stop_token
  /// fires a tenth of it before the lease ends, and then another instance may run the task. If it is longer,
  /// the stop_token fires after `atMost`; another instance may run the task when this run has returned, at
  /// the latest after another `ttl`. A task that continues nevertheless is not protected.
  std::chrono::milliseconds atMost{std::chrono::minutes{10}};

  /// The lease of the lock, which is renewed while the task runs. When an instance dies, another one may run
  /// the task after this time. See leaseOf().
  std::chrono::milliseconds ttl{std::chrono::seconds{30}};
};

/// Throws std::invalid_argument that names the first option out of range.
LOCKKEEPER_CORE_EXPORT void checkOptions(const TaskOptions& options);

/// The lease with which a task's lock is taken: `ttl`, but at most `atMost` and at least `atLeast`.
LOCKKEEPER_CORE_EXPORT std::chrono::milliseconds leaseOf(const TaskOptions& options) noexcept;

/// Work that only one instance of a service runs at a time, and not again within TaskOptions::atLeast. This
/// is not a scheduler: something in each instance, such as a ScheduledTask, calls run() at each tick.
/// Thread-safe; runs of one object never overlap either. The work may destroy the task: the run then
/// continues to its end.
class LOCKKEEPER_CORE_EXPORT ExclusiveTask {
 public:
  /// The work gets the lock, for its fence and valid(), and a token that fires when the work must end: the
  /// lock is lost, `atMost` has passed, or the caller's own token has fired.
  using Work = std::function<void(const Lock& lock, std::stop_token stop)>;

  /// Throws as checkOptions() does. The manager's listener hears of each run (EventKind::taskEnded).
  ExclusiveTask(std::shared_ptr<LockManager> manager, TaskOptions options, Work work);

  /// Runs the work on this thread, unless another instance has the lock. Throws only what the work throws,
  /// after the lock was released. Blocks for the work, and for one attempt at the store before and after it,
  /// but never for `atLeast`.
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

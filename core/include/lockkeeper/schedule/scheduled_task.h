#pragma once

#include <chrono>
#include <memory>

#include "lockkeeper/exclusive_task.h"
#include "lockkeeper/export.h"
#include "lockkeeper/schedule/schedule.h"

namespace lockkeeper {

namespace detail {
class TickLoop;
}

/// What becomes of a tick at which a process could not run its task, because it did not run yet, or the
/// machine was asleep.
enum class Missed {
  skip,  ///< Nothing. A tick that a running process comes to by up to a minute late still counts as in time.
  once,  ///< The latest tick is run when the process is there again, unless another instance has run it, it
         ///< is more than 22 h old, or the next one has come.
};

/// How the instances of a service follow a schedule. All give the same.
struct ScheduleOptions {
  Missed missed = Missed::skip;

  /// How far the wall clocks of any two machines may be apart: 0 to 1 h. A store remembers each tick for that
  /// long in addition. Where they are further apart, a tick may be run twice.
  std::chrono::milliseconds clockSkew{std::chrono::seconds{30}};
};

/// Throws std::invalid_argument that names the first option out of range.
LOCKKEEPER_CORE_EXPORT void checkOptions(const ScheduleOptions& options);

/// How long a store remembers a tick at most: the longest lease that a ScheduledTask takes besides that of
/// its task. At most 24 h.
LOCKKEEPER_CORE_EXPORT std::chrono::milliseconds leaseOf(const Schedule& schedule,
                                                         const ScheduleOptions& options) noexcept;

/// Runs an ExclusiveTask at each tick of a schedule, on one of all instances that have it. Each tick has a
/// lock of its own, NAME@2026-11-23T02:30:00Z, which an instance takes before it runs the task and which
/// stays taken until no other one comes to this tick any more. So a tick is run at most once, whoever is free
/// and however late an instance's clock is; also when its process dies meanwhile, and also when the work
/// throws.
///
/// A tick that comes while an earlier run goes on, here or elsewhere, is not run. The listener hears from
/// each instance (EventKind::taskEnded): `skipped` where another one had the tick, `missed` with the reason
/// where ticks passed without this instance, once for all that passed in a row, and otherwise as from
/// ExclusiveTask::run(). What the work throws is told there, and the next tick comes.
///
/// A wall clock that is set back by up to 24 h repeats no tick; the next one comes when it has caught up. One
/// that is set back further is taken at its word.
///
/// Has one thread, from its construction to its destruction or until the LockManager is stopped. Thread-safe.
class LOCKKEEPER_CORE_EXPORT ScheduledTask {
 public:
  /// Throws std::invalid_argument for options out of range, and for a task whose name is too long for a key
  /// (491 bytes); std::system_error when no thread can be started.
  ScheduledTask(std::shared_ptr<const ExclusiveTask> task, Schedule schedule, ScheduleOptions options = {});
  /// One that was moved from runs nothing.
  ScheduledTask(ScheduledTask&&) noexcept;
  /// Ends what it ran before, as the destructor does.
  ScheduledTask& operator=(ScheduledTask&&) noexcept;

  /// Fires the work's stop_token and blocks until the work has returned. In the work itself it does not
  /// block.
  ~ScheduledTask();

 private:
  void end() noexcept;

  std::shared_ptr<detail::TickLoop> loop_;
};

}  // namespace lockkeeper

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

/// What happens to a tick at which a process could not run its task, because the process was not running or
/// the machine was asleep.
enum class Missed {
  skip,  ///< Nothing. A running process may come to a tick up to a minute late: that still counts as in time.
  once,  ///< The latest tick is run when the process is there again, unless another instance has run it, it
         ///< is more than 22 h old, or the next one has come.
};

/// How the instances of a service follow a schedule: the same for all of them.
struct ScheduleOptions {
  Missed missed = Missed::skip;

  /// How much the wall clocks of any two machines may differ: 0 to 1 h. The store remembers each tick for
  /// that much longer. If they differ by more, a tick may be run twice.
  std::chrono::milliseconds clockSkew{std::chrono::seconds{30}};
};

/// Throws std::invalid_argument that names the first option out of range.
LOCKKEEPER_CORE_EXPORT void checkOptions(const ScheduleOptions& options);

/// How long a store remembers a tick at most: the longest lease of a ScheduledTask apart from that of its
/// task. At most 24 h.
LOCKKEEPER_CORE_EXPORT std::chrono::milliseconds leaseOf(const Schedule& schedule,
                                                         const ScheduleOptions& options) noexcept;

/// Runs an ExclusiveTask at each tick of a schedule, on one of all instances that have it. Each tick has a
/// lock of its own, NAME@2026-11-23T02:30:00Z. An instance takes it before it runs the task, and it stays
/// taken until no other instance can come to this tick any more. So a tick is run at most once, however late
/// an instance's clock is; also if the process dies meanwhile, and also if the work throws.
///
/// A tick that comes while an earlier run goes on, here or elsewhere, is not run. Each instance reports to
/// the listener (EventKind::taskEnded): `skipped` if another one had the tick; `missed`, with the reason, if
/// ticks passed without this instance, once for all that passed in a row; otherwise as ExclusiveTask::run()
/// does. What the work throws is reported there, and does not end the schedule.
///
/// If the wall clock is set back by up to 24 h, no tick is repeated: the next one comes when the clock has
/// caught up. A clock that is set back further is believed.
///
/// Has one thread, from its construction to its destruction or until the LockManager is stopped. Thread-safe.
class LOCKKEEPER_CORE_EXPORT ScheduledTask {
 public:
  /// Throws std::invalid_argument for options out of range, and for a task whose name is too long for a key
  /// (491 bytes); std::system_error when no thread can be started.
  ScheduledTask(std::shared_ptr<const ExclusiveTask> task, Schedule schedule, ScheduleOptions options = {});
  /// One that was moved from runs nothing.
  ScheduledTask(ScheduledTask&&) noexcept;
  /// Ends its former schedule, as the destructor does.
  ScheduledTask& operator=(ScheduledTask&&) noexcept;

  /// Fires the work's stop_token and blocks until the work has returned. Called from the work itself, it does
  /// not block.
  ~ScheduledTask();

 private:
  void end() noexcept;

  std::shared_ptr<detail::TickLoop> loop_;
};

}  // namespace lockkeeper

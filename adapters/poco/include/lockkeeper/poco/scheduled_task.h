#pragma once

#include <chrono>
#include <memory>
#include <stop_token>

#include "lockkeeper/exclusive_task.h"
#include "lockkeeper/poco/export.h"

namespace Poco {
class Task;
}
namespace Poco::Util {
class Timer;
class TimerTask;
}  // namespace Poco::Util

namespace lockkeeper::poco {

/// Runs `task` on the timer's thread at each whole multiple of `period` (10 ms to 366 days) since 1970 in
/// UTC: `1h` is each full hour. So all instances tick at the same times, whenever they were started, and one
/// of them runs the task at each tick, as long as TaskOptions::atLeast is longer than their clocks are apart
/// and shorter than `period`. A tick that comes while the task still runs here is left out. What the work
/// throws goes to Poco::ErrorHandler, and the next tick comes. Ends with `stop` or the timer. Trigger `stop`
/// before the Timer is destroyed, which waits for work that runs; the Timer must not be destroyed by the
/// work. Throws std::invalid_argument for a period out of range. A lockkeeper::ScheduledTask has a thread of
/// its own in place of the timer, needs no `atLeast`, and runs each tick once.
LOCKKEEPER_POCO_EXPORT void schedule(Poco::Util::Timer& timer, std::shared_ptr<const ExclusiveTask> task,
                                     std::chrono::milliseconds period, std::stop_token stop = {});

/// For Poco::Util::Timer::schedule() and scheduleAtFixedRate(), which own the result: runs `task` at each
/// tick, on the timer's thread, which is never held up by TaskOptions::atLeast. These tick from when they
/// were started, so each instance at other times: for one run in each period, TaskOptions::atLeast must then
/// be only a little shorter than the period. schedule() above needs no such care. What the work throws goes
/// to Poco::ErrorHandler, as with any TimerTask, and the next tick comes. Trigger `stop` before the Timer is
/// destroyed: the Timer waits for work that runs.
LOCKKEEPER_POCO_EXPORT Poco::Util::TimerTask* makeTimerTask(std::shared_ptr<const ExclusiveTask> task,
                                                            std::stop_token stop = {});

/// For Poco::TaskManager::start(), which owns the result: runs `task` once, on a thread of the pool. The
/// Poco::Task has its name. cancel() triggers the work's stop_token. What the work throws becomes a
/// TaskFailedNotification.
LOCKKEEPER_POCO_EXPORT Poco::Task* makeTask(std::shared_ptr<const ExclusiveTask> task);

}  // namespace lockkeeper::poco

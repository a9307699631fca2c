#pragma once

#include <memory>
#include <stop_token>

#include "lockkeeper/exclusive_task.h"
#include "lockkeeper/poco/export.h"

namespace Poco {
class Task;
}
namespace Poco::Util {
class TimerTask;
}  // namespace Poco::Util

namespace lockkeeper::poco {

/// For Poco::Util::Timer::schedule() and scheduleAtFixedRate(), which own the result: runs `task` at each
/// tick on the timer's thread, which TaskOptions::atLeast never blocks. Such timers tick from when they were
/// started, so each instance ticks at other times: for one run in each period, TaskOptions::atLeast must be
/// only a little shorter than the period. A lockkeeper::ScheduledTask needs no such care: it has a thread of
/// its own and runs each tick once. What the work throws goes to Poco::ErrorHandler, as with any TimerTask,
/// and the next tick comes. Trigger `stop` before the Timer is destroyed, because the Timer waits for work
/// that runs.
LOCKKEEPER_POCO_EXPORT Poco::Util::TimerTask* makeTimerTask(std::shared_ptr<const ExclusiveTask> task,
                                                            std::stop_token stop = {});

/// For Poco::TaskManager::start(), which owns the result: runs `task` once, on a thread of the pool. The
/// Poco::Task has its name. cancel() triggers the work's stop_token. What the work throws becomes a
/// TaskFailedNotification.
LOCKKEEPER_POCO_EXPORT Poco::Task* makeTask(std::shared_ptr<const ExclusiveTask> task);

}  // namespace lockkeeper::poco

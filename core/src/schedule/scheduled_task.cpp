#include "lockkeeper/schedule/scheduled_task.h"

#include <algorithm>
#include <new>
#include <utility>

#include "lockkeeper/duration.h"
#include "schedule/tick_loop.h"

namespace lockkeeper {

void checkOptions(const ScheduleOptions& options) {
  checkDuration("clockSkew", options.clockSkew, std::chrono::milliseconds{0}, std::chrono::hours{1});
}

std::chrono::milliseconds leaseOf(const Schedule& schedule, const ScheduleOptions& options) noexcept {
  std::chrono::milliseconds latest = detail::latestRun(options.missed);
  if (const auto period = schedule.period()) latest = std::min<std::chrono::milliseconds>(latest, *period);
  return detail::keptFor(latest, options);
}

ScheduledTask::ScheduledTask(std::shared_ptr<const ExclusiveTask> task, Schedule schedule,
                             ScheduleOptions options)
    : loop_(std::make_shared<detail::TickLoop>(std::move(task), std::move(schedule), options)) {
  loop_->start();
}

ScheduledTask::ScheduledTask(ScheduledTask&&) noexcept = default;

ScheduledTask& ScheduledTask::operator=(ScheduledTask&& other) noexcept {
  if (this == &other) return *this;
  end();
  loop_ = std::move(other.loop_);
  return *this;
}

ScheduledTask::~ScheduledTask() { end(); }

void ScheduledTask::end() noexcept {
  const auto loop = std::exchange(loop_, nullptr);
  if (!loop) return;
  if (loop->inherited()) {
    // The thread is not here, and its mutex may be held for ever: leave all of it untouched.
    new (std::nothrow) auto(loop);
    return;
  }
  loop->stop();
}

}  // namespace lockkeeper

#include "lockkeeper/exclusive_task.h"

#include <algorithm>
#include <stdexcept>

#include "lock/lease.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/internal/hook.h"

namespace lockkeeper {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds longestAtMost = std::chrono::hours{24 * 366};

LockOptions lockOptions(const TaskOptions& task) {
  LockOptions lock;
  lock.ttl = leaseOf(task);
  lock.maxHold = task.atMost;
  // Where one lease covers atMost, its end is the bound that others go by.
  if (task.atMost <= lock.ttl) lock.renew = Renew::manual;
  return lock;
}

}  // namespace

void checkOptions(const TaskOptions& options) {
  checkKey(options.name);
  checkDuration("atLeast", options.atLeast, milliseconds{0}, std::chrono::hours{24});
  checkDuration("atMost", options.atMost, std::max(options.atLeast, detail::shortestTtl), longestAtMost);
  LockOptions lease;
  lease.ttl = options.ttl;
  checkOptions(lease);
}

// Not below atLeast: whatever happens after the grant, the store keeps the key that long.
milliseconds leaseOf(const TaskOptions& options) noexcept {
  return std::max(options.atLeast, std::min(options.ttl, options.atMost));
}

const char* toString(TaskOutcome outcome) noexcept {
  switch (outcome) {
    case TaskOutcome::done:
      return "done";
    case TaskOutcome::lost:
      return "lock lost";
    case TaskOutcome::threw:
      return "threw";
    case TaskOutcome::skipped:
      return "skipped";
    case TaskOutcome::stopped:
      return "stopped";
    case TaskOutcome::storeFailed:
      return "store failed";
  }
  return "unknown";
}

ExclusiveTask::ExclusiveTask(std::shared_ptr<LockManager> manager, TaskOptions options, Work work,
                             Report report)
    : manager_(std::move(manager)),
      options_(std::move(options)),
      work_(std::move(work)),
      report_(std::move(report)) {
  if (!manager_ || !work_) throw std::invalid_argument("an ExclusiveTask needs a LockManager and work to do");
  checkOptions(options_);
}

TaskOutcome ExclusiveTask::run(std::stop_token stop) const {
  std::optional<Lock> lock;
  TaskOutcome outcome = TaskOutcome::stopped;
  try {
    if (!stop.stop_requested()) {
      LockOptions options = lockOptions(options_);
      options.stop = stop;
      lock = manager_->tryLock(options_.name, options);
      outcome = stop.stop_requested() ? TaskOutcome::stopped : TaskOutcome::skipped;
    }
  } catch (const Error& error) {
    report(TaskOutcome::storeFailed, error.what());
    return TaskOutcome::storeFailed;
  }
  if (lock) outcome = work(*lock, stop);
  report(outcome);
  return outcome;
}

TaskOutcome ExclusiveTask::work(Lock& lock, const std::stop_token& stop) const {
  std::stop_source ends;
  const auto end = [&] { ends.request_stop(); };
  const std::stop_callback onLoss(lock.lost(), end);
  const std::stop_callback onStop(stop, end);
  try {
    work_(lock, ends.get_token());
  } catch (const std::exception& error) {
    lock.releaseHeldFor(options_.atLeast);
    report(TaskOutcome::threw, error.what());
    throw;
  } catch (...) {
    lock.releaseHeldFor(options_.atLeast);
    report(TaskOutcome::threw, "not a std::exception");
    throw;
  }
  const bool valid = lock.valid();
  const bool kept = lock.releaseHeldFor(options_.atLeast) != ReleaseResult::notOwner;
  return valid && kept ? TaskOutcome::done : TaskOutcome::lost;
}

void ExclusiveTask::report(TaskOutcome outcome, std::string_view message) const {
  if (report_) callHook([&] { report_({options_.name, outcome, message}); });
}

}  // namespace lockkeeper

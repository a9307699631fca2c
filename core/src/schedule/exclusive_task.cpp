#include "lockkeeper/exclusive_task.h"

#include <algorithm>
#include <stdexcept>

#include "lock/lease/options.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"

namespace lockkeeper {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds longestAtMost = std::chrono::hours{24 * 366};

LockOptions lockOptions(const TaskOptions& task) {
  LockOptions lock;
  const milliseconds lease = leaseOf(task);
  lock.ttl = lease;
  lock.waitFor = milliseconds{0};
  // Where one lease covers atMost, its end is the bound that others go by.
  lock.renew = task.atMost <= lease ? Renew::manual : Renew::automatic;
  lock.maxHold = task.atMost;
  lock.safetyMargin = lease / 10;
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

ExclusiveTask::ExclusiveTask(std::shared_ptr<LockManager> manager, TaskOptions options, Work work)
    : parts_(std::make_shared<const Parts>(Parts{std::move(manager), std::move(options), std::move(work)})) {
  if (!parts_->manager || !parts_->work)
    throw std::invalid_argument("an ExclusiveTask needs a LockManager and work to do");
  checkOptions(parts_->options);
}

TaskOutcome ExclusiveTask::run(std::stop_token stop) const {
  const ExclusiveTask self = *this;  // The work may destroy this object.
  const Instant began = parts_->manager->environment().clock->now();
  std::string failure;
  const TaskOutcome outcome = self.attempt(stop, began, failure);
  self.tell(outcome, began, failure);
  return outcome;
}

TaskOutcome ExclusiveTask::attempt(const std::stop_token& stop, Instant began, std::string& failure) const {
  std::optional<Lock> lock;
  TaskOutcome outcome = TaskOutcome::stopped;
  try {
    if (!stop.stop_requested()) {
      LockOptions options = lockOptions(parts_->options);
      options.stop = stop;
      lock = parts_->manager->tryLock(name(), options);
      const bool stopped = stop.stop_requested() || parts_->manager->stopped();
      outcome = stopped ? TaskOutcome::stopped : TaskOutcome::skipped;
    }
  } catch (const std::exception& error) {
    try {
      failure = error.what();
    } catch (const std::bad_alloc&) {  // then nobody is told why
    }
    return TaskOutcome::storeFailed;
  }
  return lock ? work(*lock, began, stop) : outcome;
}

TaskOutcome ExclusiveTask::work(Lock& lock, Instant began, const std::stop_token& stop) const {
  std::stop_source ends;
  const auto end = [&] { ends.request_stop(); };
  const std::stop_callback onLoss(lock.lost(), end);
  const std::stop_callback onStop(stop, end);
  try {
    parts_->work(lock, ends.get_token());
  } catch (const std::exception& error) {
    lock.releaseHeldFor(parts_->options.atLeast);
    tell(TaskOutcome::threw, began, error.what());
    throw;
  } catch (...) {
    lock.releaseHeldFor(parts_->options.atLeast);
    tell(TaskOutcome::threw, began, "not a std::exception");
    throw;
  }
  const bool valid = lock.valid();
  const bool kept = lock.releaseHeldFor(parts_->options.atLeast) != ReleaseResult::notOwner;
  return valid && kept ? TaskOutcome::done : TaskOutcome::lost;
}

void ExclusiveTask::tell(TaskOutcome outcome, Instant began, std::string_view text) const {
  const Environment& environment = parts_->manager->environment();
  environment.tell({.kind = EventKind::taskEnded,
                    .key = name(),
                    .began = began,
                    .ended = environment.clock->now(),
                    .text = text,
                    .task = outcome});
}

}  // namespace lockkeeper

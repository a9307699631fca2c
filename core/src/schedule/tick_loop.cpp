#include "schedule/tick_loop.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include "lockkeeper/base/key.h"

namespace lockkeeper::detail {
namespace {

using std::chrono::floor;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_seconds;

/// How often the wall clock is read, since nobody tells when it is set.
constexpr seconds longestWait{1};

/// How far the wall clock may be set back without repeating ticks.
constexpr hours longestSetBack{24};

/// How long an instance may take from finding a tick due to holding its lock.
constexpr minutes slowestClaim{1};

/// A store that does not answer is asked again after that, and later less often.
constexpr seconds firstPause{1};
constexpr seconds longestPause{30};

/// How long the LockManager may take, once the store answers again, to release what a failed claim has taken.
constexpr seconds longestWithdrawal{5};

constexpr const char* asleep = "this process was not awake then, or its clock was set";

/// "2026-11-23T02:30:00Z".
std::string text(sys_seconds when) {
  const auto day = floor<std::chrono::days>(when);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{when - day};
  char buffer[64];
  const int length =
      std::snprintf(buffer, sizeof buffer, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                    static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                    static_cast<int>(time.seconds().count()));
  return {buffer, static_cast<std::size_t>(length)};
}

std::string keyOf(const std::string& name, sys_seconds tick) { return name + "@" + text(tick); }

}  // namespace

milliseconds latestRun(Missed missed) noexcept { return missed == Missed::once ? hours{22} : minutes{1}; }

milliseconds keptFor(milliseconds latest, const ScheduleOptions& options) noexcept {
  return latest + latest / 100 + options.clockSkew + slowestClaim;  // the store's clock may be off by 1 %
}

TickLoop::TickLoop(std::shared_ptr<const ExclusiveTask> task, Schedule schedule, ScheduleOptions options)
    : task_(std::move(task)),
      schedule_(std::move(schedule)),
      options_(options),
      pauses_(firstPause, longestPause) {
  if (!task_) throw std::invalid_argument("a ScheduledTask needs an ExclusiveTask");
  checkOptions(options_);
  checkKey(keyOf(task_->name(), sys_seconds{}));
  begin(clock().wallNow());
}

void TickLoop::start() {
  thread_ = std::thread([self = shared_from_this()] { self->run(); });
}

void TickLoop::stop() {
  stopped_.request_stop();
  {
    const std::lock_guard guard(mutex_);
    wakeUp_.notify_all();
  }
  if (thread_.get_id() == std::this_thread::get_id()) return thread_.detach();  // ends with the work
  thread_.join();
}

bool TickLoop::isStopped() const noexcept { return stopped_.stop_requested() || manager().stopped(); }

void TickLoop::run() {
  while (!isStopped()) {
    const Instant until = stepOrPause();
    std::unique_lock held(mutex_);
    if (!stopped_.stop_requested()) manager().environment().clock->wait(held, wakeUp_, until);
  }
  const Instant now = clock().now();
  manager().environment().tell(
      {.kind = EventKind::scheduleEnded, .key = task_->name(), .began = now, .ended = now});
}

/// Lack of memory must not end the process: the ticks that it has not come to are still due.
Instant TickLoop::stepOrPause() noexcept {
  try {
    return step();
  } catch (const std::exception&) {
    return saturatingAdd(clock().now(), longestWait);
  }
}

/// Begins anew, as after a start at this time.
void TickLoop::begin(WallTime wall) {
  pass(std::chrono::ceil<seconds>(wall) - seconds{1});
  if (options_.missed == Missed::skip) return;
  const sys_seconds first = schedule_.next(floor<seconds>(wall - latestRun(options_.missed)));
  if (first <= wall) pass(latestTick(first, wall) - seconds{1});
}

void TickLoop::pass(sys_seconds until) {
  passed_ = until;
  due_ = schedule_.next(until);
  const Instant now = clock().now();
  manager().environment().tell({.kind = EventKind::taskPlanned,
                                .key = task_->name(),
                                .began = now,
                                .ended = now,
                                .remaining = due_ - clock().wallNow()});
}

/// The last tick that has come by `wall`, from `from` on, which has.
sys_seconds TickLoop::latestTick(sys_seconds from, WallTime wall) const {
  while (true) {
    const sys_seconds next = schedule_.next(from);
    if (next > wall) return from;
    from = next;
  }
}

Instant TickLoop::step() {
  const WallTime wall = clock().wallNow();
  if (wall < passed_ - longestSetBack) begin(wall);
  reportSetBack(wall);
  if (due_ <= wall && clock().now() >= askAgainAt_) handleDue(wall);
  const milliseconds left = due_ - clock().wallNow();
  const Instant now = clock().now();
  const Instant due = saturatingAdd(now, std::max<milliseconds>(left, milliseconds{0}));
  return std::min(std::max(due, askAgainAt_), now + longestWait);
}

/// Reports it once each time the clock is set back, since no tick comes then for up to a day.
void TickLoop::reportSetBack(WallTime wall) {
  const bool former = std::exchange(setBack_, wall < passed_ - options_.clockSkew);
  if (!setBack_ || former) return;
  task_->tell(TaskOutcome::missed, clock().now(),
              "the wall clock was set back: no tick comes before " + text(due_));
}

void TickLoop::handleDue(WallTime wall) {
  const sys_seconds first = due_;
  const sys_seconds earliest = std::chrono::ceil<seconds>(wall - latestRun(options_.missed));
  const sys_seconds inTime = first < earliest ? schedule_.next(earliest - seconds{1}) : first;
  const char* const why = failed_ == first ? "the store did not answer in time" : asleep;
  if (inTime > wall) {
    reportMissed(first, why);
    return pass(floor<seconds>(wall));
  }
  const sys_seconds tick = latestTick(inTime, wall);
  if (tick != first) reportMissed(first, why);
  pass(tick);
  const Attempt outcome = attempt(tick);
  if (outcome == Attempt::storeFailed) return tryAgain(tick);
  if (outcome == Attempt::notRun) return;
  const WallTime ended = clock().wallNow();
  if (due_ > ended) return;
  reportMissed(due_, "a run of this process went on");
  pass(floor<seconds>(ended));
}

/// Plans another attempt at this tick: soon, and at the next tick at the latest.
void TickLoop::tryAgain(sys_seconds tick) {
  if (failed_ != tick) pauses_ = Backoff(firstPause, longestPause);
  failed_ = tick;
  const auto pause = pauses_.next(*manager().environment().random);
  askAgainAt_ =
      clock().now() + std::clamp<std::chrono::nanoseconds>(due_ - clock().wallNow(), seconds{0}, pause);
  passed_ = tick - seconds{1};
  due_ = tick;
}

TickLoop::Attempt TickLoop::attempt(sys_seconds tick) {
  const Instant began = clock().now();
  const milliseconds latest = std::min<milliseconds>(latestRun(options_.missed), schedule_.next(tick) - tick);
  // Once the store may have forgotten the lock, another instance may take it: it is claimed again.
  if (claimed_ != tick || began >= claimedUntil_) {
    claimed_.reset();
    const Attempt claimed = claim(tick, latest, began);
    if (claimed != Attempt::run) return claimed;
    claimed_ = tick;
    claimedUntil_ = saturatingAdd(began, keptFor(latest, options_) * 9 / 10);
  }
  if (clock().wallNow() > tick + latest + slowestClaim) {
    // Another instance may have run it so long ago that the store has forgotten the lock.
    reportMissed(tick, "its lock was granted too late");
    return Attempt::notRun;
  }
  const Attempt outcome = runTask(tick, began);
  // If the clock is set back, the same tick comes again: then it has to be claimed again.
  if (outcome != Attempt::storeFailed) claimed_.reset();
  return outcome;
}

/// Takes the tick's lock and leaves it taken. `run` when this process is to run the tick.
TickLoop::Attempt TickLoop::claim(sys_seconds tick, milliseconds latest, Instant began) {
  LockOptions options;
  options.ttl = keptFor(latest, options_);
  options.waitFor = milliseconds{0};
  options.renew = Renew::manual;
  options.maxHold = forever;
  options.safetyMargin = *options.ttl / 10;
  options.stop = stopped_.get_token();
  try {
    auto claim = task_->parts_->manager->tryLock(keyOf(task_->name(), tick), options);
    if (!claim && mayBeOwnClaim(tick, began)) return Attempt::storeFailed;
    if (!claim) {
      task_->tell(isStopped() ? TaskOutcome::stopped : TaskOutcome::skipped, began);
      return Attempt::notRun;
    }
    if (isStopped()) {
      claim->release();  // another instance may run it
      task_->tell(TaskOutcome::stopped, began);
      return Attempt::notRun;
    }
    // After any other result, the lock certainly stays taken for `ttl` from the claim on.
    if (claim->releaseHeldFor(*options.ttl) == ReleaseResult::notOwner) {
      reportMissed(tick, "its lock was lost before the run began");
      return Attempt::notRun;
    }
  } catch (const std::exception& error) {
    return storeFailed(tick, began, error.what());
  }
  return Attempt::run;
}

/// Runs the task at a tick that was claimed. If the store fails at the lock of the task, that is asked for
/// again later, since no other instance runs this tick.
TickLoop::Attempt TickLoop::runTask(sys_seconds tick, Instant began) {
  try {
    std::string failure;
    const TaskOutcome outcome = task_->attempt(stopped_.get_token(), began, failure);
    if (outcome == TaskOutcome::storeFailed) return storeFailed(tick, began, failure);
    if (outcome == TaskOutcome::skipped) {
      if (mayBeOwnClaim(tick, began)) return Attempt::storeFailed;
      reportMissed(tick, "another run goes on");
      return Attempt::notRun;
    }
    task_->tell(outcome, began);
  } catch (...) {
    // The listener was told what the work threw.
  }
  return Attempt::run;
}

/// Reports it once for each tick.
TickLoop::Attempt TickLoop::storeFailed(sys_seconds tick, Instant began, std::string_view why) {
  if (failed_ != tick) task_->tell(TaskOutcome::storeFailed, began, why);
  ownClaimsEndAt_ = clock().now() + longestWithdrawal;
  return Attempt::storeFailed;
}

/// Whether a lock that is busy may have been taken by an earlier request of this process, which failed.
bool TickLoop::mayBeOwnClaim(sys_seconds tick, Instant began) const {
  return failed_ == tick && began < ownClaimsEndAt_;
}

void TickLoop::reportMissed(sys_seconds first, const std::string& why) const {
  task_->tell(TaskOutcome::missed, clock().now(), "the tick of " + text(first) + ": " + why);
}

}  // namespace lockkeeper::detail

#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/schedule/scheduled_task.h"

namespace lockkeeper::detail {

/// How late a tick may still be run.
std::chrono::milliseconds latestRun(Missed missed) noexcept;

/// How long the lock of a tick that may be run so late stays taken: then no instance tries to run it any
/// more.
std::chrono::milliseconds keptFor(std::chrono::milliseconds latest, const ScheduleOptions& options) noexcept;

/// What a ScheduledTask is behind its pointer. One thread calls step(); the rest is thread-safe.
class TickLoop : public std::enable_shared_from_this<TickLoop> {
 public:
  TickLoop(std::shared_ptr<const ExclusiveTask> task, Schedule schedule, ScheduleOptions options);

  /// Starts the thread.
  void start();
  /// Ends it.
  void stop();

  /// Handles the ticks that have come by now, and blocks for their run. Returns when to look again.
  Instant step();

  bool inherited() const noexcept { return forkGuard_.inherited(); }

 private:
  void run();
  Instant stepOrPause() noexcept;
  bool isStopped() const noexcept;
  void begin(WallTime wall);
  void pass(std::chrono::sys_seconds until);
  std::chrono::sys_seconds latestTick(std::chrono::sys_seconds from, WallTime wall) const;
  void tellWhenSetBack(WallTime wall);
  void handleDue(WallTime wall);
  /// What came of a tick.
  enum class Attempt { run, notRun /* certainly */, storeFailed };
  Attempt attempt(std::chrono::sys_seconds tick);
  Attempt claim(std::chrono::sys_seconds tick, std::chrono::milliseconds latest, Instant began);
  Attempt runClaimed(std::chrono::sys_seconds tick, Instant began);
  Attempt storeFailed(std::chrono::sys_seconds tick, Instant began, std::string_view why);
  bool isBeingGivenBack(std::chrono::sys_seconds tick, Instant began) const;
  void tryAgain(std::chrono::sys_seconds tick);
  void tell(TaskOutcome outcome, Instant began, std::string_view text = {}) const;
  void tellMissed(std::chrono::sys_seconds first, const std::string& why) const;
  const LockManager& manager() const { return *task_->manager_; }
  const Clock& clock() const { return *manager().environment().clock; }

  const std::shared_ptr<const ExclusiveTask> task_;
  const Schedule schedule_;
  const ScheduleOptions options_;
  const ForkGuard forkGuard_;
  std::chrono::sys_seconds passed_{};                  // all ticks up to this moment are done with
  std::chrono::sys_seconds due_{};                     // the first one after it
  std::optional<std::chrono::sys_seconds> failed_{};   // the due one, when the store has failed at it,
  Instant askAgainAt_ = Instant::min();                // and when it is asked again
  std::optional<std::chrono::sys_seconds> claimed_{};  // the tick whose lock this process has taken,
  Instant claimedUntil_ = Instant::min();              // and until when the store surely keeps it
  Instant givenBackAt_ = Instant::min();
  bool setBack_ = false;  // the wall clock, behind what is done with
  Backoff pauses_;

  std::thread thread_;
  std::stop_source stopped_;
  std::mutex mutex_;
  std::condition_variable wakeUp_;
};

}  // namespace lockkeeper::detail

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

/// How long the lock of a tick stays taken that may be run `latest` late. After that, no instance tries to
/// run the tick any more.
std::chrono::milliseconds keptFor(std::chrono::milliseconds latest, const ScheduleOptions& options) noexcept;

/// What a ScheduledTask is behind its pointer. One thread calls step(); the rest is thread-safe.
class TickLoop : public std::enable_shared_from_this<TickLoop> {
 public:
  TickLoop(std::shared_ptr<const ExclusiveTask> task, Schedule schedule, ScheduleOptions options);

  /// Starts the thread.
  void start();
  /// Ends it.
  void stop();

  /// Handles the ticks that have come by now, and blocks for their run. Returns when to call it again.
  Instant step();

  bool inherited() const noexcept { return forkGuard_.inherited(); }

 private:
  void run();
  Instant stepOrPause() noexcept;
  bool isStopped() const noexcept;
  void begin(WallTime wall);
  void pass(std::chrono::sys_seconds until);
  std::chrono::sys_seconds latestTick(std::chrono::sys_seconds from, WallTime wall) const;
  void reportSetBack(WallTime wall);
  void handleDue(WallTime wall);
  enum class Attempt { run, notRun, storeFailed };
  Attempt attempt(std::chrono::sys_seconds tick);
  Attempt claim(std::chrono::sys_seconds tick, std::chrono::milliseconds latest, Instant began);
  Attempt runTask(std::chrono::sys_seconds tick, Instant began);
  Attempt storeFailed(std::chrono::sys_seconds tick, Instant began, std::string_view why);
  bool mayBeOwnClaim(std::chrono::sys_seconds tick, Instant began) const;
  void tryAgain(std::chrono::sys_seconds tick);
  void reportMissed(std::chrono::sys_seconds first, const std::string& why) const;
  const LockManager& manager() const { return *task_->parts_->manager; }
  const Clock& clock() const { return *manager().environment().clock; }

  const std::shared_ptr<const ExclusiveTask> task_;
  const Schedule schedule_;
  const ScheduleOptions options_;
  const ForkGuard forkGuard_;
  std::chrono::sys_seconds passed_{};                  // all ticks up to this moment are done with
  std::chrono::sys_seconds due_{};                     // the first one after it
  std::optional<std::chrono::sys_seconds> failed_{};   // the tick at which the store has failed,
  Instant askAgainAt_ = Instant::min();                // and when the store is asked for it again
  std::optional<std::chrono::sys_seconds> claimed_{};  // the tick whose lock this process has taken,
  Instant claimedUntil_ = Instant::min();              // and until when the store certainly keeps that lock
  Instant ownClaimsEndAt_ = Instant::min();
  bool setBack_ = false;  // the wall clock is behind `passed_`
  Backoff pauses_;

  std::thread thread_;
  std::stop_source stopped_;
  std::mutex mutex_;
  std::condition_variable wakeUp_;
};

}  // namespace lockkeeper::detail

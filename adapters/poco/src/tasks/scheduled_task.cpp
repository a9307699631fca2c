#include "lockkeeper/poco/scheduled_task.h"

#include <Poco/AutoPtr.h>
#include <Poco/Clock.h>
#include <Poco/Task.h>
#include <Poco/Timestamp.h>
#include <Poco/Util/Timer.h>
#include <Poco/Util/TimerTask.h>

#include <stdexcept>
#include <utility>

#include "lockkeeper/duration.h"

namespace lockkeeper::poco {

namespace {

constexpr std::chrono::milliseconds shortestPeriod{10};
constexpr std::chrono::milliseconds longestPeriod = std::chrono::hours{24 * 366};

std::shared_ptr<const ExclusiveTask> checked(std::shared_ptr<const ExclusiveTask> task) {
  if (!task) throw std::invalid_argument("a task for Poco needs an ExclusiveTask");
  return task;
}

class TickTask final : public Poco::Util::TimerTask {
 public:
  TickTask(std::shared_ptr<const ExclusiveTask> task, std::stop_token stop)
      : task_(checked(std::move(task))), stop_(std::move(stop)) {}

  void run() override { task_->run(stop_); }

 private:
  const std::shared_ptr<const ExclusiveTask> task_;
  const std::stop_token stop_;
};

/// Plans itself anew after each run, so that its ticks stay on the multiples of the period however the clocks
/// of the machine are set.
class AlignedTask final : public Poco::Util::TimerTask {
 public:
  AlignedTask(Poco::Util::Timer& timer, std::shared_ptr<const ExclusiveTask> task,
              std::chrono::milliseconds period, std::stop_token stop)
      : timer_(timer), task_(checked(std::move(task))), period_(period), stop_(std::move(stop)) {
    checkDuration("the period of a scheduled task", period_, shortestPeriod, longestPeriod);
  }

  void plan() {
    const auto period = static_cast<Poco::Timestamp::TimeDiff>(period_.count()) * 1000;
    const auto now = Poco::Timestamp().epochMicroseconds();
    const auto next = now / period + 1;
    tick_ = next == tick_ ? next + 1 : next;  // the same again: it came a little early
    timer_.schedule(Ptr(this, true), Poco::Clock() + (tick_ * period - now));
  }

  void run() override {
    const struct Again {
      AlignedTask& task;
      ~Again() {
        if (!task.stop_.stop_requested()) task.plan();
      }
    } again{*this};
    task_->run(stop_);
  }

 private:
  Poco::Util::Timer& timer_;
  const std::shared_ptr<const ExclusiveTask> task_;
  const std::chrono::milliseconds period_;
  const std::stop_token stop_;
  Poco::Timestamp::TimeDiff tick_ = 0;
};

class PoolTask final : public Poco::Task {
 public:
  explicit PoolTask(std::shared_ptr<const ExclusiveTask> task)
      : Poco::Task(checked(task)->name()), task_(std::move(task)) {}

  void runTask() override { task_->run(stop_.get_token()); }

  void cancel() override {
    Poco::Task::cancel();
    stop_.request_stop();
  }

 private:
  const std::shared_ptr<const ExclusiveTask> task_;
  std::stop_source stop_;
};

}  // namespace

Poco::Util::TimerTask* makeTimerTask(std::shared_ptr<const ExclusiveTask> task, std::stop_token stop) {
  return new TickTask(std::move(task), std::move(stop));
}

void schedule(Poco::Util::Timer& timer, std::shared_ptr<const ExclusiveTask> task,
              std::chrono::milliseconds period, std::stop_token stop) {
  Poco::AutoPtr<AlignedTask> aligned(new AlignedTask(timer, std::move(task), period, std::move(stop)));
  aligned->plan();
}

Poco::Task* makeTask(std::shared_ptr<const ExclusiveTask> task) { return new PoolTask(std::move(task)); }

}  // namespace lockkeeper::poco

#include "lockkeeper/poco/tasks.h"

#include <Poco/Task.h>
#include <Poco/Util/TimerTask.h>

#include <stdexcept>
#include <utility>

namespace lockkeeper::poco {

namespace {

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

Poco::Task* makeTask(std::shared_ptr<const ExclusiveTask> task) { return new PoolTask(std::move(task)); }

}  // namespace lockkeeper::poco

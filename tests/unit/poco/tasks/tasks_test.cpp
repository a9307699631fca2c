#include "lockkeeper/poco/tasks.h"

#include <gtest/gtest.h>

#include <Poco/ErrorHandler.h>
#include <Poco/Observer.h>
#include <Poco/TaskManager.h>
#include <Poco/TaskNotification.h>
#include <Poco/Util/Timer.h>
#include <Poco/Util/TimerTask.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "lockkeeper/memory/memory_driver.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class PocoTaskTest : public ::testing::Test {
 protected:
  std::shared_ptr<ExclusiveTask> task(ExclusiveTask::Work work, TaskOptions options = {}) {
    options.name = "report";
    return std::make_shared<ExclusiveTask>(manager, options, std::move(work));
  }
  std::size_t heard(TaskOutcome outcome) { return heard_->count(outcome); }

 private:
  struct Heard final : Listener {
    void on(const Event& event) override {
      const std::lock_guard guard(mutex);
      if (event.kind == EventKind::taskEnded) outcomes.push_back(event.task);
    }
    std::size_t count(TaskOutcome outcome) {
      const std::lock_guard guard(mutex);
      return static_cast<std::size_t>(std::count(outcomes.begin(), outcomes.end(), outcome));
    }
    std::mutex mutex;
    std::vector<TaskOutcome> outcomes;
  };
  ManagerOptions toldTo(std::shared_ptr<Listener> listener) {
    ManagerOptions made;
    made.environment.listener = std::move(listener);
    return made;
  }

  const std::shared_ptr<Heard> heard_ = std::make_shared<Heard>();

 protected:
  const std::shared_ptr<LockManager> manager =
      std::make_shared<LockManager>(std::make_shared<MemoryDriver>(), toldTo(heard_));
};

TEST_F(PocoTaskTest, ATimerRunsItAtEachTickAndIsNotHeldUpByAtLeast) {
  std::atomic<int> runs = 0;
  Poco::Util::Timer timer;
  timer.schedule(poco::makeTimerTask(task([&](const Lock&, const std::stop_token&) { ++runs; },
                                          {.atLeast = 1h, .atMost = 1h})),
                 0, 1);
  EXPECT_TRUE(waitUntil([&] { return heard(TaskOutcome::skipped) >= 5; })) << "the ticks go on";
  EXPECT_EQ(runs, 1);
  timer.cancel(true);
}

/// Counts what reaches Poco's ErrorHandler, while it lives.
class CountingErrors : public Poco::ErrorHandler {
 public:
  CountingErrors() : former_(Poco::ErrorHandler::set(this)) {}
  ~CountingErrors() override { Poco::ErrorHandler::set(former_); }
  void exception(const Poco::Exception&) override { ++others; }
  void exception(const std::exception& error) override {
    (error.what() == std::string("burnt") ? burnt : others)++;
  }
  void exception() override { ++others; }

  std::atomic<int> burnt = 0;
  std::atomic<int> others = 0;

 private:
  Poco::ErrorHandler* const former_;
};

TEST_F(PocoTaskTest, WhatTheWorkThrowsOnATimerGoesToPocosErrorHandlerAndTheNextTickComes) {
  CountingErrors errors;
  Poco::Util::Timer timer;
  timer.schedule(poco::makeTimerTask(
                     task([](const Lock&, const std::stop_token&) { throw std::runtime_error("burnt"); })),
                 0, 1);
  EXPECT_TRUE(waitUntil([&] { return errors.burnt >= 3; }));
  EXPECT_EQ(errors.others, 0);
  EXPECT_GE(heard(TaskOutcome::threw), 3U);
  timer.cancel(true);
}

TEST_F(PocoTaskTest, AStopTokenEndsTheWorkSoThatTheTimerCanBeDestroyed) {
  std::stop_source stop;
  std::atomic<bool> begun = false;
  {
    Poco::Util::Timer timer;
    timer.schedule(poco::makeTimerTask(task([&](const Lock&, const std::stop_token& token) {
                                         begun = true;
                                         EXPECT_TRUE(waitUntil([&] { return token.stop_requested(); }));
                                       }),
                                       stop.get_token()),
                   Poco::Timestamp());
    ASSERT_TRUE(waitUntil([&] { return begun.load(); }));
    stop.request_stop();
  }
  EXPECT_EQ(heard(TaskOutcome::done), 1U);
}

TEST_F(PocoTaskTest, CancellingThePocoTaskFiresTheWorksToken) {
  std::atomic<bool> begun = false;
  Poco::TaskManager tasks;
  tasks.start(poco::makeTask(task([&](const Lock&, const std::stop_token& token) {
    begun = true;
    EXPECT_TRUE(waitUntil([&] { return token.stop_requested(); }));
  })));
  ASSERT_TRUE(waitUntil([&] { return begun.load(); }));
  EXPECT_EQ(tasks.taskList().front()->name(), "report");
  tasks.cancelAll();
  tasks.joinAll();
  EXPECT_EQ(heard(TaskOutcome::done), 1U);
}

/// Hears what failed.
struct Failures {
  std::atomic<int> heard = 0;
  void failed(Poco::TaskFailedNotification* notification) {
    if (notification->reason().displayText().find("burnt") != std::string::npos) ++heard;
    notification->release();
  }
};

TEST_F(PocoTaskTest, WhatTheWorkThrowsInATaskManagerIsATaskFailedNotification) {
  Failures failures;
  Poco::TaskManager tasks;
  tasks.addObserver(Poco::Observer<Failures, Poco::TaskFailedNotification>(failures, &Failures::failed));
  tasks.start(
      poco::makeTask(task([](const Lock&, const std::stop_token&) { throw std::runtime_error("burnt"); })));
  tasks.joinAll();
  EXPECT_EQ(failures.heard, 1);
  EXPECT_EQ(heard(TaskOutcome::threw), 1U);
}

TEST_F(PocoTaskTest, RefusesToBeMadeOfNothing) {
  EXPECT_THROW(poco::makeTimerTask(nullptr), std::invalid_argument);
  EXPECT_THROW(poco::makeTask(nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace lockkeeper::test

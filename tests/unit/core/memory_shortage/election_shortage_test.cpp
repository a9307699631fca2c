// Elections and tasks go on although there is no memory for the words that tell of a failure.

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>

#include "allocations.h"
#include "decorators.h"
#include "lockkeeper/exclusive_task.h"
#include "lockkeeper/leader_election.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

TEST(ElectionShortage, ACallbackThatFailsIsToldWithoutWords) {
  struct Failures final : Listener {
    void on(const Event& event) override {
      if (event.kind == EventKind::callbackFailed) told.set_value(event.text.empty());
    }
    std::promise<bool> told;
  };
  const auto failures = std::make_shared<Failures>();
  ManagerOptions managed;
  managed.environment.listener = failures;
  static thread_local std::optional<FailingAllocation> failing;
  const LeaderElection election(std::make_shared<LockManager>(std::make_shared<MemoryDriver>(), managed),
                                {.name = "chief"}, {.elected = [](const Term&) {
                                  const std::runtime_error error("a text that is longer than a short string");
                                  failing.emplace(0);
                                  throw error;  // which is copied by counting
                                }});
  auto told = failures->told.get_future();
  ASSERT_EQ(told.wait_for(20s), std::future_status::ready);
  EXPECT_TRUE(told.get());
}

TEST(TaskShortage, AStoreThatFailsIsToldWithoutWords) {
  struct Outcomes final : Listener {
    void on(const Event& event) override {
      if (event.kind == EventKind::taskEnded) told = event.text.empty();
    }
    std::optional<bool> told;
  };
  struct Down final : PlainDecorator {
    using PlainDecorator::PlainDecorator;
    AcquireResult acquire(const AcquireRequest& /*request*/) override {
      const StoreUnavailable error("a text that is longer than a short string");
      failing.emplace(0);
      throw error;  // which is copied by counting
    }
    std::optional<FailingAllocation> failing;
  };
  const auto outcomes = std::make_shared<Outcomes>();
  ManagerOptions managed;
  managed.environment.listener = outcomes;
  const auto down = std::make_shared<Down>(std::make_shared<MemoryDriver>());
  const ExclusiveTask task(std::make_shared<LockManager>(down, managed), {.name = "report"},
                           [](const Lock&, const std::stop_token&) {});
  EXPECT_EQ(task.run(), TaskOutcome::storeFailed);
  EXPECT_TRUE(FailingAllocation::happened());
  down->failing.reset();
  EXPECT_EQ(outcomes->told, true);
}

}  // namespace
}  // namespace lockkeeper::test

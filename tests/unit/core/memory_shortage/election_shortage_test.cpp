// An election goes on although there is no memory for the words that tell of a failure.

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>

#include "allocations.h"
#include "lockkeeper/leader_election.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"

namespace lockkeeper::testing {
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

}  // namespace
}  // namespace lockkeeper::testing

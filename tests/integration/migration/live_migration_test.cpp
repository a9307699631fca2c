#include "live_fleet.h"

namespace lockkeeper::test {
namespace {

using LiveMigration = LiveFleet;

TEST_F(LiveMigration, LosesNothingOnTheWayToTheNewStoreAndBack) {
  const Processes fleet = start(4, worker(oldUri()));
  ASSERT_TRUE(statusSays("current:   legacy")) << status();
  const auto isMember = [&](const Process& process) {
    return status().find(":" + std::to_string(process.pid()) + " ") != std::string::npos;
  };
  for (const auto& process : fleet) EXPECT_TRUE(isMember(*process)) << status();
  ASSERT_NO_FATAL_FAILURE(takeStep("order:* = both", "order:* = both, * = legacy"));
  ASSERT_NO_FATAL_FAILURE(takeStep("both", "both"));
  ASSERT_NO_FATAL_FAILURE(takeStep("order:* = modern", "order:* = modern, * = both"));
  ASSERT_NO_FATAL_FAILURE(takeStep("50% = modern", "order:* = modern, 50% = modern, * = both"));
  ASSERT_NO_FATAL_FAILURE(takeStep("modern", "modern"));
  ASSERT_NO_FATAL_FAILURE(takeStep("both", "both"));
  ASSERT_NO_FATAL_FAILURE(takeStep("legacy", "legacy"));
  const Work work = finish(fleet, "stop");
  EXPECT_EQ(counted(), work.count);
  EXPECT_LE(work.longestStop, longestStopAllowed());
  EXPECT_EQ(errors(), "");
  EXPECT_FALSE(isMember(*fleet[0])) << "those that have ended have left: " << status();
}

}  // namespace
}  // namespace lockkeeper::test

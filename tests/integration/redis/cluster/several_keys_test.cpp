// Several keys of a cluster that are locked together.

#include <future>
#include <string>
#include <vector>

#include "cluster_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::vector<AcquireRequest> requestsOf(const std::vector<Claimant>& claimants) {
  std::vector<AcquireRequest> requests;
  for (const Claimant& each : claimants) requests.push_back(each.request());
  return requests;
}

std::size_t scriptsRunBy(const RedisServer& node) {
  const std::string info = node.command({"INFO", "commandstats"});
  std::size_t count = 0;
  for (const std::string name : {"cmdstat_evalsha:calls=", "cmdstat_eval:calls="}) {
    const std::size_t at = info.find(name);
    if (at != std::string::npos) count += std::stoul(info.substr(at + name.size()));
  }
  return count;
}

TEST_F(MovedSlot, KeysOfOneSlotAreTakenByOneRequest) {
  std::vector<Claimant> claimants;
  for (const char* part : {"a", "b", "c", "d"}) claimants.push_back(claimOf("{" + key + "}" + part));
  auto& several = *capability<Batchable>(*driver);
  for (const bool known : {false, true}) {
    const std::size_t before = scriptsRunBy(cluster().node(from));
    const auto results = several.acquireInOrder(requestsOf(claimants));
    const std::size_t after = scriptsRunBy(cluster().node(from));
    ASSERT_EQ(results.size(), claimants.size());
    EXPECT_TRUE(granted(results.back()));
    EXPECT_TRUE(!known || after - before == 1U) << after - before;
    for (const Claimant& each : claimants)
      EXPECT_EQ(driver->release(each.claim(), soon()), ReleaseOutcome::released);
  }
}

TEST_F(MovedSlot, KeysBeforeASlotThatIsOnItsWayAreTakenAndTheRestIsWaitedFor) {
  const std::vector<Claimant> claimants{claimOf("!" + newKey(to)), claimOf("{" + key + "}a"),
                                        claimOf("{" + key + "}b")};
  beginMove();
  const auto results = capability<Batchable>(*driver)->acquireInOrder(requestsOf(claimants));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(granted(results[0]));
  EXPECT_EQ(driver->release(claimants[0].claim(), soon()), ReleaseOutcome::released);
  LockManager manager(open());
  auto taking = std::async(std::launch::async, [&] {
    return manager.lockAll({claimants[0].key, claimants[1].key, claimants[2].key}, {.waitFor = 30s});
  });
  EXPECT_TRUE(waitUntil([&] { return driver->holder(claimants[0].key, soon()).has_value(); }));
  endMove();
  LockSet set = taking.get();
  EXPECT_TRUE(set.valid());
  for (const Claimant& each : claimants) EXPECT_TRUE(driver->holder(each.key, soon())) << each.key;
  EXPECT_EQ(set.release(), ReleaseResult::released);
}

}  // namespace
}  // namespace lockkeeper::test

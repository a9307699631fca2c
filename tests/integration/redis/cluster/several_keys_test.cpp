// Several keys of a cluster that are locked together.

#include <atomic>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cluster_fixture.h"

#include "lockkeeper/driver/batches.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::vector<AcquireRequest> requestsOf(const std::vector<Claimant>& claimants, bool waits = false) {
  std::vector<AcquireRequest> requests;
  for (const Claimant& each : claimants) {
    requests.push_back(each.request());
    requests.back().waits = waits;
  }
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

class SpreadKeys : public ClusterFailover {
 protected:
  // No master fails here, however long it is paused, or the machine is busy.
  SpreadKeys() {
    for (std::size_t node = 0; node < cluster().size(); ++node)
      cluster().node(node).command({"CONFIG", "SET", "cluster-node-timeout", "60000"});
  }
  ~SpreadKeys() override {
    for (std::size_t node = 0; node < cluster().size(); ++node)
      cluster().node(node).command({"CONFIG", "SET", "cluster-node-timeout", "1000"});
  }

  /// Two of each master, in the order of their bytes: a/…, b/…, and so on.
  static std::vector<Claimant> keysOfAllMasters() {
    std::vector<Claimant> claimants;
    const std::string unique = Token::generate(*systemRandom()).hex();
    char first = 'a';
    for (int round = 0; round < 2; ++round) {
      for (const std::size_t master : masters())
        claimants.push_back(claimOf(keyAt(master, std::string(1, first++) + "/" + unique)));
    }
    return claimants;
  }
  static std::vector<std::string_view> keysOf(const std::vector<Claimant>& claimants) {
    std::vector<std::string_view> keys;
    for (const Claimant& each : claimants) keys.push_back(each.key);
    return keys;
  }

  const std::shared_ptr<LockDriver> driver = open("ioTimeout=10s");
  Batchable& several = *capability<Batchable>(*driver);
};

TEST_F(SpreadKeys, AllMastersAreAskedBeforeTheFirstOneAnswers) {
  const auto claimants = keysOfAllMasters();
  const auto releaseAll = [&] {
    for (const Claimant& each : claimants)
      EXPECT_EQ(driver->release(each.claim(), soon()), ReleaseOutcome::released);
  };
  // From then on all of them know the script.
  ASSERT_EQ(several.acquireInOrder(requestsOf(claimants, true)).size(), claimants.size());
  releaseAll();
  std::vector<std::size_t> at;
  for (const Claimant& each : claimants) at.push_back(masterOf(each.key));
  cluster().node(at[0]).pause();
  auto taking =
      std::async(std::launch::async, [&] { return several.acquireInOrder(requestsOf(claimants, true)); });
  for (const std::size_t index : {1U, 2U, 4U, 5U}) {
    EXPECT_TRUE(waitUntil([&] {
      return cluster().node(at[index]).command({"EXISTS", claimants[index].key}) == "1";
    })) << index;
  }
  EXPECT_EQ(taking.wait_for(0s), std::future_status::timeout);
  cluster().node(at[0]).resume();
  const auto results = taking.get();
  ASSERT_EQ(results.size(), claimants.size());
  for (const AcquireResult& each : results) EXPECT_TRUE(granted(each));
  releaseAll();
  cluster().awaitWell();
}

TEST_F(SpreadKeys, ThoseBehindABusyOneAreGivenBackBeforeTheCallReturns) {
  const auto claimants = keysOfAllMasters();
  const auto other = open();
  const Claimant holds = claimOf(claimants[2].key);
  ASSERT_TRUE(granted(other->acquire(holds.request())));
  for (int round = 0; round < 2; ++round) {  // before anything is known of the connections, and after
    const auto results = several.acquireInOrder(requestsOf(claimants, true));
    ASSERT_EQ(results.size(), 3U);
    EXPECT_TRUE(granted(results[0]));
    EXPECT_TRUE(granted(results[1]));
    EXPECT_FALSE(granted(results[2]));
    for (const std::size_t index : {3U, 4U, 5U}) {
      const Claimant next = claimOf(claimants[index].key);
      EXPECT_TRUE(granted(other->acquire(next.request()))) << index;
      EXPECT_EQ(other->release(next.claim(), soon()), ReleaseOutcome::released);
    }
    for (const std::size_t index : {0U, 1U})
      EXPECT_EQ(driver->release(claimants[index].claim(), soon()), ReleaseOutcome::released);
  }
  EXPECT_EQ(other->release(holds.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(SpreadKeys, OfTwoWhoTryToTakeTheSameOneGetsThem) {
  LockManager first(driver);
  LockManager second(open());
  const auto claimants = keysOfAllMasters();
  const auto keys = keysOf(claimants);
  for (int round = 0; round < 100; ++round) {
    auto other = std::async(std::launch::async, [&] { return second.tryLockAll(keys); });
    auto own = first.tryLockAll(keys);
    auto its = other.get();
    ASSERT_TRUE(own || its) << round;
    if (own) own->release();
    if (its) its->release();
  }
}

TEST_F(SpreadKeys, ManyWhoWaitForKeysThatOverlapAllGetThem) {
  constexpr std::size_t rounds = 20;
  const auto claimants = keysOfAllMasters();
  const auto keys = keysOf(claimants);
  std::vector<std::atomic<int>> holders(keys.size());
  std::atomic<int> mistakes{0};
  std::vector<std::jthread> threads;
  for (std::size_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      LockManager manager(open());
      for (std::size_t round = 0; round < rounds; ++round) {
        const std::size_t without = (number + round) % keys.size();
        std::vector<std::string_view> wanted = keys;
        std::erase(wanted, keys[without]);
        const LockSet set = manager.lockAll(wanted, {.waitFor = 1min});
        for (std::size_t i = 0; i < keys.size(); ++i) mistakes += i != without && holders[i]++ != 0;
        std::this_thread::yield();
        for (std::size_t i = 0; i < keys.size(); ++i) holders[i] -= i != without;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(mistakes, 0);
}

}  // namespace
}  // namespace lockkeeper::test

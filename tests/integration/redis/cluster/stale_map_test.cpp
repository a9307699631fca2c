// The map of the cluster is old, or cannot be read in time.

#include <string>

#include "cluster_fixture.h"

#include "lockkeeper/driver/inspection.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

TEST_F(ClusterFailover, WhoHasNoTimeForTheMapCostsTheNextCallerNothing) {
  const auto driver = open();
  for (std::size_t node = 0; node < cluster().size(); ++node) cluster().node(node).pause();
  EXPECT_THROW((void)driver->holder("k", in(10ms)), StoreUnavailable);
  for (std::size_t node = 0; node < cluster().size(); ++node) cluster().node(node).resume();
  EXPECT_NO_THROW((void)driver->holder("k", soon()));
  cluster().awaitWell();
}

TEST_F(ClusterFailover, WhoKnowsOnlyAFormerMasterFindsTheNextOne) {
  const std::size_t victim = masters().front();
  const Claimant who = claimOf(keyAt(victim, "former-"));
  const auto impatient = open();
  const auto lister = open();
  const auto misled = open();
  const auto doubts = DoubtCount::of(*impatient);
  LockManager keeper(open());
  const Lock kept = keeper.lock(keyAt(victim, "kept-"), {.ttl = 10min});
  const std::string keptKey(kept.key());
  // Of its ten minutes, five are left; the next renewal would come in three.
  EXPECT_EQ(cluster().node(victim).command({"PEXPIRE", keptKey, "300000"}), "1");
  ASSERT_TRUE(granted(impatient->acquire(who.request())));
  cluster().awaitReplicas(victim);
  const auto isListed = [&] {
    bool found = false;
    capability<Browsable>(*lister)->list(
        who.key, [&](std::string_view, const Holder&) { return found = true; }, soon());
    return found;
  };
  EXPECT_TRUE(isListed());
  EXPECT_TRUE(misled->holder(who.key, soon()));
  kill(victim, who.key);

  const std::size_t next = masterOf(who.key, (victim + 1) % cluster().size());
  EXPECT_TRUE(waitUntil([&] {
    return std::stol(cluster().node(next).command({"PTTL", keptKey})) > 300'000;
  })) << "nobody has looked whether the next master knows it";
  EXPECT_TRUE(kept.valid());
  EXPECT_THROW((void)impatient->holder(who.key, now()), StoreUnavailable);
  EXPECT_NO_THROW(EXPECT_TRUE(impatient->holder(who.key, soon()))) << "the one before had no time";
  EXPECT_GT(doubts->value, 0);
  EXPECT_NO_THROW(EXPECT_TRUE(isListed()));
  {
    const RedisServer tenant(RedisOptions{.port = cluster().node(victim).port()});
    EXPECT_THROW((void)misled->holder(who.key, soon()), ConfigError);
    EXPECT_NO_THROW(EXPECT_TRUE(misled->holder(who.key, soon()))) << "somebody else has its address now";
  }
  EXPECT_EQ(impatient->release(who.claim(), soon()), ReleaseOutcome::released);
  cluster().restart(victim);
}

TEST(ClusterSetUp, AClusterThatWasReplacedByAnotherOneIsNamed) {
  RedisCluster cluster(2, 0);
  const auto driver = openStore(cluster.uri());
  const std::string key = cluster.keyAt(1, "k");
  EXPECT_FALSE(driver->holder(key, soon()));
  cluster.kill(1);
  RedisServer& first = cluster.node(0);
  EXPECT_EQ(first.command({"CLUSTER", "RESET", "HARD"}), "OK");
  EXPECT_EQ(first.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}), "OK");
  std::string text;
  EXPECT_TRUE(waitUntil([&] {
    try {
      (void)driver->holder(key, soon());
    } catch (const StoreUnavailable& error) {
      text = error.what();
    } catch (const OutcomeUnknown&) {
      // The connection has broken just now.
    }
    return text.find("belongs to another cluster") != std::string::npos;
  })) << text;
}

}  // namespace
}  // namespace lockkeeper::test

// Masters die, stand still, and are replaced.

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "cluster_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

TEST_F(ClusterFailover, TenThousandHeldLocksOutliveTheDeathOfAMaster) {
  constexpr std::size_t threads = 8;
  constexpr std::size_t perThread = 1250;
  const auto driver = open();
  std::vector<Claimant> held(threads * perThread);
  {
    std::vector<std::jthread> takers;
    for (std::size_t thread = 0; thread < threads; ++thread) {
      takers.emplace_back([&, thread] {
        for (std::size_t i = thread * perThread; i < (thread + 1) * perThread; ++i) {
          EXPECT_TRUE(granted(driver->acquire(held[i].request())));
        }
      });
    }
  }
  const std::optional<Fence> firstFence = driver->holder(held[0].key, soon())->fence;
  const std::size_t victim = masterOf(held[0].key);
  for (const std::size_t each : masters()) {
    // What it has acknowledged is on its replica by then.
    cluster().awaitReplicas(each);
  }
  kill(victim, held[0].key);
  std::size_t renewed = 0;
  for (std::size_t begin = 0; begin < held.size(); begin += 1000) {
    std::vector<Renewal> renewals;
    for (std::size_t i = begin; i < begin + 1000; ++i) renewals.push_back({held[i].claim(), longTtl});
    const auto isDone = [&] {
      driver->renew(renewals, soon());
      return std::all_of(renewals.begin(), renewals.end(),
                         [](const Renewal& each) { return each.outcome == RenewOutcome::renewed; });
    };
    EXPECT_TRUE(waitUntil(isDone));
    for (const Renewal& each : renewals) renewed += each.outcome == RenewOutcome::renewed;
  }
  EXPECT_EQ(renewed, held.size());
  const Claimant next = claimOf(held[0].key);
  EXPECT_FALSE(granted(driver->acquire(next.request()))) << "the new master knows the holder";
  EXPECT_EQ(driver->release(held[0].claim(), soon()), ReleaseOutcome::released);
  const AcquireResult result = driver->acquire(next.request());
  ASSERT_TRUE(granted(result));
  EXPECT_GT(std::get<Granted>(result).fence, firstFence);
  cluster().restart(victim);
}

TEST_F(ClusterFailover, WhoWaitsForALockOfADeadMasterGetsItFromTheNextOne) {
  LockManager holders(open());
  const std::size_t victim = masters().front();
  const std::string key = keyAt(victim, "waited-");
  std::optional<Lock> held = holders.lock(key);
  const Fence first = *held->fence();
  std::atomic<Fence> second = 0;
  std::jthread waiter([&] {
    LockManager manager(open());
    second = *manager.lock(key, {.waitFor = 60s}).fence();
  });
  ASSERT_TRUE(waitUntil([&] {
    return cluster().node(victim).command({"ZCARD", "{" + key + "}:lockkeeper:queue"}) == "1";
  }));
  cluster().awaitReplicas(victim);
  const auto bystander = open();
  EXPECT_TRUE(bystander->holder(key, soon()));
  kill(victim, key);
  EXPECT_NO_THROW(EXPECT_TRUE(bystander->holder(key, soon()))) << "the first call finds the new master";
  EXPECT_TRUE(held->valid());
  held.reset();
  waiter.join();
  EXPECT_GT(second, first);
  cluster().restart(victim);
}

TEST_F(ClusterFailover, AMasterThatStandsStillMakesNoRenewalOfAnotherOneLate) {
  const auto driver = open("ioTimeout=20s");
  std::vector<Claimant> held(30);
  std::vector<Renewal> renewals;
  for (const Claimant& each : held) {
    ASSERT_TRUE(granted(driver->acquire(each.request())));
    renewals.push_back({each.claim(), longTtl});
  }
  const std::size_t still = masterOf(held[0].key);
  std::atomic<std::size_t> told = 0;
  std::size_t others = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (masterOf(held[i].key) == still) continue;
    ++others;
    renewals[i].told = [&](const Renewal& each) {
      EXPECT_EQ(each.outcome, RenewOutcome::renewed);
      ++told;
    };
  }
  ASSERT_GT(others, 0U);
  cluster().node(still).pause();
  std::jthread renewer([&] { driver->renew(renewals, in(15s)); });
  EXPECT_TRUE(waitUntil([&] { return told == others; }, 10s)) << "they wait for the one that stands still";
  cluster().node(still).resume();
  renewer.join();
  cluster().awaitWell();
}

TEST_F(ClusterFailover, ACrowdOfCallersInAnOutageAsksTheClusterNoMoreThanOneWould) {
  const auto driver = open();
  const std::size_t victim = masters().back();
  const std::string key = keyAt(victim, "storm-");
  (void)driver->holder(key, soon());
  cluster().kill(victim);
  const std::size_t before = looksAtTheMap();
  const auto began = now();
  std::atomic<bool> ended = false;
  std::atomic<std::size_t> calls = 0;
  std::vector<std::jthread> crowd;
  for (int caller = 0; caller < 64; ++caller) {
    crowd.emplace_back([&] {
      while (!ended) {
        try {
          (void)driver->holder(key, soon());
          ended = true;  // its replica has taken over
        } catch (const Error&) {
          ++calls;
        }
      }
    });
  }
  crowd.clear();
  const auto length = std::chrono::duration_cast<std::chrono::milliseconds>(now() - began);
  // At most three nodes every 50 ms, after the first time.
  EXPECT_LE(looksAtTheMap() - before, 3 * static_cast<std::size_t>(length / 50ms + 2))
      << length.count() << " ms";
  EXPECT_GT(calls, 64U);
  cluster().restart(victim);
}

TEST_F(ClusterFailover, AGrantCountsOnlyWithAReplicaWhereThatIsAskedFor) {
  const auto driver = open("minReplicas=1&replicaTimeout=300ms");
  const std::size_t master = masters().front();
  const Claimant who = claimOf(keyAt(master, "replicated-"));
  EXPECT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(cluster().node(master).command({"CLUSTER", "INFO"}).find("messages_publish_"), std::string::npos)
      << "to ask for replicas is no matter of all nodes";
  const auto strict = open("minReplicas=2&replicaTimeout=50ms");
  EXPECT_THROW((void)strict->acquire(who.request()), StoreUnavailable);
  EXPECT_FALSE(driver->holder(who.key, soon())) << "it was not given back";
  const std::vector<std::size_t> all = replicas();
  ASSERT_EQ(all.size(), 3U);
  for (const std::size_t replica : all) cluster().node(replica).pause();
  std::string text;
  try {
    (void)driver->acquire(who.request());
  } catch (const StoreUnavailable& error) {
    text = error.what();
  }
  for (const std::size_t replica : all) cluster().node(replica).resume();
  EXPECT_NE(text.find("only 0 of 1 replicas"), std::string::npos) << text;
  cluster().awaitWell();
}

TEST_F(ClusterFailover, WhoDoesNotWaitForTheReplicasAnyMoreHarmsNoneOfTheNextOnes) {
  const auto driver = open("minReplicas=1&replicaTimeout=10s");
  const std::size_t master = masters().front();
  const auto grantedInTime = [&](const Claimant& who, std::chrono::milliseconds time) {
    try {
      return granted(driver->acquire(who.request(in(time))));
    } catch (const Error&) {
      return false;
    }
  };
  ASSERT_TRUE(grantedInTime(claimOf(keyAt(master, "connects-")), 10s));
  const Claimant patient = claimOf(keyAt(master, "patient-"));
  const Claimant next = claimOf(keyAt(master, "next-"));
  const Claimant hasty = claimOf(keyAt(master, "hasty-"));
  const std::vector<std::size_t> all = replicas();
  for (const std::size_t replica : all) cluster().node(replica).pause();
  auto waiting = std::async(std::launch::async, [&] { return grantedInTime(patient, 30s); });
  EXPECT_TRUE(waitUntil([&] {
    return cluster().node(master).command({"CLIENT", "LIST"}).find("cmd=wait") != std::string::npos;
  }));
  EXPECT_FALSE(grantedInTime(hasty, 200ms));
  EXPECT_TRUE(waitUntil([&] { return cluster().node(master).command({"EXISTS", hasty.key}) == "0"; }));
  for (const std::size_t replica : all) cluster().node(replica).resume();
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(grantedInTime(next, 10s));
  cluster().awaitWell();
}

}  // namespace
}  // namespace lockkeeper::test

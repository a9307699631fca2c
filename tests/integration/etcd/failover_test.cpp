// What becomes of locks when members of their cluster die, stand still, or restart.

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "etcd_fixture.h"
#include "fault_proxy.h"
#include "held_shares.h"
#include "succeeds_in_the_end.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Whether the cluster, as soon as it answers, says that the lock is still held.
bool renews(Lock& lock) {
  bool held = false;
  EXPECT_TRUE(waitUntil([&] {
    try {
      lock.renew();
      held = true;
    } catch (const LockLost&) {
    } catch (const Error&) {
      return false;
    }
    return true;
  }));
  return held;
}

const LockOptions asLongAsWeLike{.ttl = longTtl, .waitFor = 20s, .renew = Renew::manual};

/// The lock has outlived what was done to the cluster, and the next one has a higher fence.
void expectKept(Lock& lock, LockManager& other) {
  EXPECT_TRUE(renews(lock));
  succeedsInTheEnd([&] { EXPECT_FALSE(other.tryLock("k", {.waitFor = 1s})); });
  EXPECT_EQ(lock.release(), ReleaseResult::released);
  const Lock next = other.lock("k", asLongAsWeLike);
  EXPECT_GT(*next.fence(), *lock.fence());
}

TEST(EtcdFailover, ALeaderThatDiesCostsNoLock) {
  EtcdCluster cluster;
  const std::size_t leader = cluster.leader();
  LockManager manager(openEtcd(cluster.uri(leader)));
  LockManager other(openEtcd(cluster.uri(leader)));
  Lock lock = manager.lock("k", asLongAsWeLike);
  ASSERT_FALSE(other.tryLock("k")) << "and both are connected to it";
  cluster.kill(leader);
  expectKept(lock, other);
}

TEST(EtcdFailover, ALeaderThatStandsStillCostsNoLock) {
  EtcdCluster cluster;
  const std::size_t leader = cluster.leader();
  LockManager manager(openEtcd(cluster.uri(leader), ""));
  LockManager other(openEtcd(cluster.uri(leader), ""));
  Lock lock = manager.lock("k", asLongAsWeLike);
  succeedsInTheEnd([&] { EXPECT_FALSE(other.tryLock("k")) << "and both are connected to it"; });
  cluster.pause(leader);
  EXPECT_TRUE(waitUntil([&] {
    try {
      return manager.tryLock("another").has_value();
    } catch (const Error&) {
      return false;
    }
  }));
  expectKept(lock, other);
  cluster.resume(leader);
  EXPECT_TRUE(manager.tryLock("k", asLongAsWeLike));
}

TEST(EtcdFailover, ARestartOfAllNodesKeepsLocks) {
  EtcdCluster cluster({.nodes = 1});
  LockManager manager(openEtcd(cluster.uri()));
  LockManager other(openEtcd(cluster.uri()));
  Lock lock = manager.lock("k", asLongAsWeLike);
  cluster.kill(0);
  EXPECT_THROW((void)other.tryLock("k"), StoreUnavailable);
  cluster.start(0);
  expectKept(lock, other);
}

TEST(EtcdFailover, ARestartOfAllNodesKeepsSharesAndTheirCount) {
  EtcdCluster cluster({.nodes = 1});
  LockManager manager(openEtcd(cluster.uri()));
  HeldShares shares(manager, asLongAsWeLike);
  cluster.kill(0);
  EXPECT_THROW((void)shares.semaphore.tryAcquire(1, 0s), StoreUnavailable);
  cluster.start(0);

  LockManager other(openEtcd(cluster.uri()));
  for (Lock& each : shares.held) EXPECT_TRUE(renews(each));
  EXPECT_TRUE(renews(shares.reader));
  shares.expectTaken(other);
  shares.expectExactCount(other);
}

TEST(EtcdFailover, ConnectionsThatWereKeptAndHaveEndedCostNoLock) {
  EtcdCluster cluster({.nodes = 1});
  FaultProxy proxy(cluster.port(0));
  const auto driver = openEtcd(etcdUri(proxy.port()));
  LockManager manager(driver);
  for (const Ending ending : {Ending::fin, Ending::rst}) {
    Lock lock = manager.lock("k", asLongAsWeLike);
    const std::vector<Claimant> all(12);
    for (const Claimant& each : all) ASSERT_TRUE(granted(driver->acquire(each.request())));
    const std::size_t before = proxy.connections();
    // So that each release has a connection of its own, on which nobody reads the last reply.
    proxy.set({.kind = ProxyFault::Kind::delay, .pause = 500ms});
    std::barrier begin(static_cast<std::ptrdiff_t>(all.size()));
    std::vector<std::jthread> threads;
    for (const Claimant& each : all) {
      threads.emplace_back([&] {
        begin.arrive_and_wait();
        EXPECT_EQ(driver->release(each.claim(), soon()), ReleaseOutcome::released);
      });
    }
    threads.clear();
    ASSERT_GT(proxy.connections(), before + 3) << "more than a call makes attempts";
    proxy.passThrough();
    proxy.endConnections(ending);
    EXPECT_NO_THROW(lock.renew());
    EXPECT_EQ(lock.release(), ReleaseResult::released);
  }
}

TEST(EtcdFailover, ALostQuorumIsToldInTimeAndNothingIsGranted) {
  EtcdCluster cluster;
  LockManager manager(openEtcd(cluster.uri() + "?ioTimeout=500ms"));
  const Instant end = now() + 4s;  // or a little later: the lease begins after this
  const Lock lock = manager.lock("k", {.ttl = 4s});
  std::atomic<bool> inTime{false};
  const std::stop_callback<std::function<void()>> onLoss(lock.lost(), [&] { inTime = now() < end + 4s; });
  const auto former = lock.fence();
  cluster.kill(0);
  cluster.kill(1);
  EXPECT_THROW((void)manager.tryLock("other"), Error);
  ASSERT_TRUE(waitUntil([&] { return lock.lost().stop_requested(); }));
  EXPECT_FALSE(lock.valid());
  EXPECT_TRUE(waitUntil([&] { return inTime.load(); }, 1s));
  cluster.start(0);
  const Lock next = manager.lock("k", {.ttl = 10s, .waitFor = 30s});
  EXPECT_GT(*next.fence(), *former);
}

TEST(EtcdFailover, AMemberThatIsCutOffFromTheOthersSaysSoAtOnce) {
  EtcdCluster cluster;
  const auto toOne = openEtcd(etcdUri(cluster.port(0)), "");
  ASSERT_TRUE(granted(toOne->acquire(Claimant{}.request())));
  cluster.kill(1);
  cluster.kill(2);
  ASSERT_TRUE(waitUntil([&] {
    const Instant began = now();
    try {
      (void)toOne->acquire(Claimant{}.request());
    } catch (const StoreUnavailable& error) {
      return std::string(error.what()).find("no leader") != std::string::npos && now() - began < 1s;
    } catch (const OutcomeUnknown&) {
    }
    return false;
  }));
}

TEST(EtcdFailover, NeverHasTwoHoldersWhileLeadersDie) {
  EtcdCluster cluster;
  std::atomic<bool> stop{false};
  std::atomic<int> grants{0};
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::mutex mutex;
  Fence highest = 0;
  int fencesBack = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, manager = std::make_shared<LockManager>(
                                 openEtcd(cluster.uri(static_cast<std::size_t>(i) % 3) + "?ioTimeout=1s"))] {
      while (!stop) {
        try {
          Lock lock = manager->lock("k", {.ttl = 30s, .waitFor = 20s});
          if (inside.fetch_add(1) != 0) ++overlaps;
          {
            const std::lock_guard guard(mutex);
            if (*lock.fence() <= highest) ++fencesBack;
            highest = std::max(highest, *lock.fence());
          }
          std::this_thread::yield();
          inside.fetch_sub(1);
          ++grants;
        } catch (const Error&) {
        }
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    const int before = grants;
    EXPECT_TRUE(waitUntil([&] { return grants > before + 20; })) << "locks are taken between two failures";
    const std::size_t leader = cluster.leader();
    cluster.kill(leader);
    const int failed = grants;
    EXPECT_TRUE(waitUntil([&] { return grants > failed + 20; }, 40s)) << "and with one member fewer";
    cluster.start(leader);
  }
  stop = true;
  threads.clear();
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(fencesBack, 0);
}

}  // namespace
}  // namespace lockkeeper::test

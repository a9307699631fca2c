// Locks, fences and limits while the primary of a group changes.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/error.h"
#include "lockkeeper/mysql/rate_table.h"
#include "lockkeeper/mysql/server_rows.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/testing/noted_losses.h"
#include "replication_group_of_three.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST_F(ReplicationGroupOfThree, FencesAreDurableOnceTheAccountSeesThatTheGroupHasThem) {
  const auto driver = openConnected("mysql+version");
  (void)driver->holder("k", soon());
  EXPECT_EQ(driver->promises().fence, FencePromise::whileStoreKeepsWrites);
  EXPECT_THAT(driver->promises().durability, HasSubstr("replication_group_members"));
  group.node(group.primary())
      .execute("GRANT SELECT ON performance_schema.replication_group_members TO clerk@'127.0.0.1'");
  for (const char* const scheme : {"mysql+version", "mysql+getlock"}) {
    const auto seeing = openConnected(scheme);
    (void)seeing->holder("k", soon());
    EXPECT_EQ(seeing->promises().fence, FencePromise::durable) << scheme;
    EXPECT_THAT(seeing->promises().durability, HasSubstr("a majority of its group")) << scheme;
  }
  group.node(group.primary())
      .execute("REVOKE SELECT ON performance_schema.replication_group_members FROM clerk@'127.0.0.1'");
}

TEST_F(ReplicationGroupOfThree, NamedLocksWithoutFencesAreRefused) {
  try {
    (void)open("mysql+getlock", "&fence=off")->acquire(Claimant{}.request());
    ADD_FAILURE() << "granted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("fence=on is needed"));
  }
}

TEST_F(ReplicationGroupOfThree, APlannedSwitchCostsNoVersionRowAndEachNamedLock) {
  const auto version = openConnected("mysql+version");
  const auto getLock = openConnected("mysql+getlock");
  const Claimant kept{};
  const Claimant lost{};
  const AcquireResult first = version->acquire(kept.request());
  ASSERT_TRUE(granted(first));
  ASSERT_TRUE(granted(getLock->acquire(lost.request())));
  group.makePrimary(after(group.primary()));
  EXPECT_EQ(renew(*getLock, lost), RenewOutcome::notOwner) << "a silent second holder";
  EXPECT_TRUE(waitUntil([&] { return renew(*version, kept) == RenewOutcome::renewed; }));
  EXPECT_EQ(version->holder(kept.key, soon())->fence, std::get<Granted>(first).fence);
  EXPECT_EQ(version->release(kept.claim(), soon()), ReleaseOutcome::released);
  const AcquireResult next = version->acquire(kept.request());
  ASSERT_TRUE(granted(next));
  EXPECT_GT(std::get<Granted>(next).fence, std::get<Granted>(first).fence);
  succeedsInTheEnd([&] { EXPECT_TRUE(granted(getLock->acquire(lost.request()))); });
}

TEST_F(ReplicationGroupOfThree, APrimaryThatIsCutOffFromTheOthersGrantsAndRenewsNothing) {
  const auto version = openConnected("mysql+version");
  const auto getLock = openConnected("mysql+getlock", "&ioTimeout=1s");
  const Claimant held{};
  ASSERT_TRUE(granted(version->acquire(Claimant{}.request())));
  ASSERT_TRUE(granted(getLock->acquire(held.request())));
  const std::size_t alone = group.primary();
  const std::vector<std::size_t> others{after(alone), after(after(alone))};
  for (const std::size_t each : others) group.node(each).pause();

  const auto grants = [&](const std::shared_ptr<LockDriver>& driver) {
    try {
      return granted(driver->acquire(Claimant{}.request(in(1s))));
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::config) << error.what();
      return false;
    }
  };
  std::vector<std::future<bool>> tries;
  for (const auto& driver : {version, getLock, open("mysql+version"), open("mysql+getlock")}) {
    tries.push_back(std::async(std::launch::async, [&grants, driver] { return grants(driver); }));
  }
  mysql::ServerRows rows(StoreUri::parse(group.uri("mysql", database)), {.table = "lockkeeper_locks"});
  EXPECT_THROW((void)rows.begin(), StoreUnavailable);
  for (auto& each : tries) EXPECT_FALSE(each.get());
  EXPECT_NE(renew(*getLock, held, 1s), RenewOutcome::renewed) << "the others may have another primary";

  for (const std::size_t each : others) group.node(each).resume();
  group.awaitAll();
  succeedsInTheEnd([&] { EXPECT_TRUE(granted(version->acquire(Claimant{}.request()))); });
  succeedsInTheEnd([&] { EXPECT_TRUE(granted(getLock->acquire(Claimant{}.request()))); });
}

/// What a thread that takes and guards one key in turn with others has been told.
struct Load {
  std::mutex mutex;
  std::vector<Fence> fences;       // In the order of the grants.
  std::atomic<Fence> guarded = 0;  // The highest that the guarded row has acknowledged.
  std::atomic<std::int64_t> taken = 0;
  std::atomic<bool> stop = false;
};

void lockInTurn(LockDriver& locks, mysql::ServerRows& rows, Load& load) {
  while (!load.stop) {
    Claimant who;
    who.key = "row";
    try {
      const AcquireResult result = locks.acquire(who.request(in(2s)));
      if (!granted(result)) continue;
      const Fence fence = *std::get<Granted>(result).fence;
      {
        const std::lock_guard held(load.mutex);
        load.fences.push_back(fence);
      }
      auto transaction = rows.begin();
      const auto written =
          transaction.execute("UPDATE guarded SET fence = ? WHERE fence < ?",
                              {static_cast<std::int64_t>(fence), static_cast<std::int64_t>(fence)});
      transaction.commit();
      EXPECT_EQ(written, 1U) << "fence " << fence << " comes after a higher one";
      load.guarded = fence;
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::config) << error.what();
    }
    // Whoever does not know what became of his claim asks until it is free: nobody else may have it.
    while (!load.stop) {
      try {
        (void)locks.release(who.claim(), in(2s));
        break;
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::config) << error.what();
      }
    }
  }
}

TEST_F(ReplicationGroupOfThree, AKilledPrimaryTakesNoLockFenceOrChargeWithIt) {
  const auto locks = openConnected("mysql+version");
  mysql::RateTable limits(StoreUri::parse(group.uri("mysql+version", database) + "?createTable=true"));
  mysql::ServerRows rows(StoreUri::parse(group.uri("mysql", database)), {});
  DatabaseServer& former = group.node(group.primary());
  const std::size_t killed = group.primary();
  former.execute("CREATE TABLE " + database + ".guarded (id INT PRIMARY KEY, fence BIGINT)");
  former.execute("INSERT INTO " + database + ".guarded VALUES (1, 0)");
  // So slow that no unit comes back during the test.
  constexpr std::int64_t burst = 30'000;
  const RatePolicy policy{"p", {.rate = {1, 24h}, .burst = burst}};
  const Claimant kept{};
  const AcquireResult before = locks->acquire(kept.request());
  ASSERT_TRUE(granted(before));

  Load load;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([&] { lockInTurn(*locks, rows, load); });
  threads.emplace_back([&] {
    while (!load.stop) {
      RateCharge charge{.key = "units", .law = &policy.law()};
      try {
        limits.take({&charge, 1}, in(2s));
        if (charge.outcome.granted == 1) ++load.taken;
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::config) << error.what();
      }
    }
  });
  const auto grants = [&] {
    const std::lock_guard held(load.mutex);
    return load.fences.size();
  };
  EXPECT_TRUE(waitUntil([&] { return grants() > 20 && load.taken > 20; }, failoverBound));
  former.kill();
  const std::size_t atDeath = grants();
  const std::int64_t takenAtDeath = load.taken;
  EXPECT_TRUE(
      waitUntil([&] { return grants() > atDeath + 20 && load.taken > takenAtDeath + 20; }, failoverBound))
      << "no grants after the failover";
  load.stop = true;
  threads.clear();

  EXPECT_TRUE(std::ranges::is_sorted(load.fences)) << "a fence went back";
  EXPECT_EQ(std::ranges::adjacent_find(load.fences), load.fences.end()) << "a fence was given twice";
  DatabaseServer& primary = group.node(group.primary());
  EXPECT_GE(std::stoull(primary.ask("SELECT fence FROM " + database + ".guarded")), load.guarded.load())
      << "an acknowledged write is lost";
  RateCharge look{.key = "units", .law = &policy.law(), .cost = 0};
  limits.peek({&look, 1}, soon());
  EXPECT_LE(look.outcome.remaining, burst - load.taken) << "acknowledged charges are lost";
  EXPECT_EQ(renew(*locks, kept), RenewOutcome::renewed);
  EXPECT_EQ(locks->holder(kept.key, soon())->fence, std::get<Granted>(before).fence);
  group.rejoin(killed);
}

// It stands still until the others have replaced it, and does not know that yet when it goes on.
TEST_F(ReplicationGroupOfThree, AReplacedPrimaryThatWakesUpRenewsNoNamedLock) {
  const auto getLock = openConnected("mysql+getlock", "&ioTimeout=1s");
  const auto version = openConnected("mysql+version");
  const auto lost = std::make_shared<testing::NotedLosses>();
  capability<LossReporting>(*getLock)->addLossListener(lost);
  const Claimant held{};
  ASSERT_TRUE(granted(getLock->acquire(held.request())));
  const Claimant besides{};
  AcquireRequest onAnotherSession = besides.request();
  onAnotherSession.ttl = longTtl + 1s;
  ASSERT_TRUE(granted(getLock->acquire(onAnotherSession)));
  ASSERT_TRUE(granted(version->acquire(Claimant{}.request())));
  const std::size_t replaced = group.primary();
  group.node(replaced).pause();
  Claimant rival;
  rival.key = held.key;
  const auto other = open("mysql+getlock");
  succeedsInTheEnd([&] { EXPECT_TRUE(granted(other->acquire(rival.request(in(2s))))); });
  succeedsInTheEnd([&] { EXPECT_TRUE(granted(version->acquire(Claimant{}.request(in(2s))))); });
  group.node(replaced).resume();
  // An answer may be late, and then says nothing.
  EXPECT_TRUE(waitUntil([&] {
    const RenewOutcome outcome = renew(*getLock, held, 2s);
    EXPECT_NE(outcome, RenewOutcome::renewed);
    return outcome == RenewOutcome::notOwner;
  })) << "the holder goes on until its lease ends";
  EXPECT_TRUE(lost->heardOf(besides.token));
  EXPECT_EQ(renew(*other, rival), RenewOutcome::renewed);
  group.rejoin(replaced);
}

// The plugin refuses transactions before the server becomes read-only.
TEST_F(ReplicationGroupOfThree, APrimaryThatIsStoppedIsNoMatterForTheAdministrator) {
  const std::size_t stopped = group.primary();
  const auto version = openConnected("mysql+version");
  const auto getLock = openConnected("mysql+getlock");
  std::atomic<bool> done = false;
  std::vector<std::jthread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&, i] {
      while (!done) {
        // A fresh log-in each, and claims on the sessions that are there.
        for (const auto& driver : {i == 0 ? version : getLock, open("mysql+getlock")}) {
          try {
            (void)driver->acquire(Claimant{}.request(in(2s)));
          } catch (const Error& error) {
            EXPECT_NE(error.code(), ErrorCode::config) << error.what();
          }
        }
      }
    });
  }
  const std::shared_ptr<void> ends(nullptr, [&](void*) { done = true; });
  group.leave(stopped);
  for (const auto& driver : {version, getLock}) {
    succeedsInTheEnd([&] { EXPECT_TRUE(granted(driver->acquire(Claimant{}.request(in(2s))))); });
  }
  done = true;
  callers.clear();
  group.rejoin(stopped);
}

}  // namespace
}  // namespace lockkeeper::test

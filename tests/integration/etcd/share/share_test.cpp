// Shares of a key on etcd: who is granted one beside whom, and in which order.

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "etcd_waiters.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/permit/upgradeable_lock.h"

namespace lockkeeper::test {
namespace {

class EtcdShares : public EtcdWaiters {
 protected:
  std::size_t holders() const { return capability<Permits>(*direct)->shareHolders(key, soon()).size(); }
  bool nothingStored() const { return cluster().firstClaim(key).created == 0; }

  const std::shared_ptr<LockDriver> direct = open();
};

TEST_F(EtcdShares, WhoWaitsForSeveralPermitsIsWokenUpWhenTheyAreFree) {
  const std::array holding{sharer(1, 4), sharer(1, 4), sharer(1, 4), sharer(1, 4)};
  for (const Claimant& each : holding) ASSERT_TRUE(granted(direct->acquire(each.request())));
  const Claimant waits = sharer(3, 4);
  const std::size_t streams = cluster().watchMessages();
  const auto driver = open();
  Result result = wait(driver, waits);
  ASSERT_TRUE(queued(1));
  ASSERT_TRUE(streamsSince(streams));
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(direct->release(holding[i].claim(), soon()), ReleaseOutcome::released);
    EXPECT_FALSE(done(result, 100ms));
  }
  ASSERT_EQ(direct->release(holding[2].claim(), soon()), ReleaseOutcome::released);
  const Instant released = now();
  ASSERT_TRUE(done(result));
  EXPECT_LT(now() - released, 3s) << "waiters look after three seconds at the earliest";
  EXPECT_TRUE(granted(result.get()));
  EXPECT_EQ(holders(), 2U);
  EXPECT_EQ(direct->release(holding[3].claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(direct->release(waits.claim(), soon()), ReleaseOutcome::released);
}

// Nobody reads as far as the last one of them.
/// Makes a call again that a slow cluster has not answered, as core does.
template <class Call>
auto insist(Call&& call) {
  for (bool again = false;; again = true) {
    try {
      return call(again);
    } catch (const OutcomeUnknown&) {
    } catch (const StoreUnavailable&) {
    }
  }
}

TEST_F(EtcdShares, ManyWhoWaitForAFewPermitsAreAllServed) {
  constexpr std::size_t waiters = 200;
  const Claimant holds = sharer(2, 2);
  ASSERT_TRUE(granted(direct->acquire(holds.request())));
  const auto driver = open();
  std::vector<std::future<Fence>> waiting;
  const EndOfWaits end{stop_};
  std::atomic<std::uint32_t> taken{0};
  std::atomic<int> tooMany{0};
  for (std::size_t i = 0; i < waiters; ++i) {
    waiting.push_back(std::async(std::launch::async, [&, who = sharer(1, 2)]() -> Fence {
      const AcquireResult result = insist([&](bool again) {
        return capability<Waitable>(*driver)->acquireWaiting(who.request(soon(), again), 3min,
                                                             stop_.get_token());
      });
      if (!granted(result)) return 0;
      if (taken.fetch_add(1) >= 2) ++tooMany;
      taken.fetch_sub(1);
      insist([&](bool again) {
        const ReleaseOutcome outcome = driver->release(who.claim(), soon());
        EXPECT_TRUE(outcome == ReleaseOutcome::released || again);
        return outcome;
      });
      return std::get<Granted>(result).fence.value_or(0);
    }));
  }
  ASSERT_TRUE(queued(waiters, 1min));
  ASSERT_EQ(direct->release(holds.claim(), soon()), ReleaseOutcome::released);
  for (auto& each : waiting) EXPECT_GT(each.get(), 0U);
  EXPECT_EQ(tooMany, 0);
  EXPECT_TRUE(nothingStored());
}

// More than one transaction sends back.
TEST_F(EtcdShares, WhoWaitedIsGrantedAfterAnUpgradeWithAHigherFence) {
  constexpr std::size_t waiters = 45;
  LockManager manager(open());
  auto held = UpgradeableLock::lock(manager, key);
  const Claimant reads = sharer(readerShare.weight, readerShare.limit);
  ASSERT_TRUE(granted(direct->acquire(reads.request())));
  const auto driver = open();
  std::vector<std::future<std::optional<Fence>>> waiting;
  const EndOfWaits end{stop_};
  for (std::size_t i = 0; i < waiters; ++i) {
    Claimant who = sharer(readerShare.weight, readerShare.limit);
    if (i == 0) who.share.reset();
    waiting.push_back(std::async(std::launch::async, [this, driver, who]() -> std::optional<Fence> {
      const AcquireResult result =
          capability<Waitable>(*driver)->acquireWaiting(who.request(), 3min, stop_.get_token());
      if (!granted(result)) return std::nullopt;
      EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
      return std::get<Granted>(result).fence;
    }));
    // The first one is a writer, whom all others wait for.
    ASSERT_TRUE(i > 0 || queued(1));
  }
  ASSERT_TRUE(queued(waiters, 1min));
  auto upgrading = std::async(std::launch::async, [&] { return held.tryUpgrade(1min); });
  ASSERT_TRUE(queued(waiters + 1, 1min));
  ASSERT_EQ(direct->release(reads.claim(), soon()), ReleaseOutcome::released);
  ASSERT_TRUE(upgrading.get());
  const auto fence = held.fence();
  ASSERT_TRUE(fence);
  ASSERT_TRUE(queued(waiters, 1min)) << "they wait again";
  EXPECT_EQ(held.release(), ReleaseResult::released);
  for (auto& each : waiting) {
    const auto later = each.get();
    ASSERT_TRUE(later);
    EXPECT_GT(*later, *fence);
  }
  EXPECT_TRUE(nothingStored());
}

TEST_F(EtcdShares, WhatIsNoClaimIsWaitedForAndLeftAlone) {
  Claimant reads = sharer(upgradeableShare.weight, upgradeableShare.limit);
  ASSERT_TRUE(granted(direct->acquire(reads.request())));
  ASSERT_NE(cluster().request("/v3/lease/grant", R"({"TTL":"600","ID":"4712"})").find("4712"),
            std::string::npos);
  cluster().put("/lockkeeper/locks/" + key + "/foreign", "somebody else's", 4712);
  Claimant rest = sharer(restOfUpgradeable.weight, restOfUpgradeable.limit);
  AcquireRequest upgrade = rest.request();
  upgrade.ahead = true;
  EXPECT_FALSE(granted(direct->acquire(upgrade)));
  EXPECT_FALSE(granted(direct->acquire(sharer(1, upgradeableShare.limit).request())));
  EXPECT_EQ(cluster().lastClaim(key).lease, 4712);
  (void)cluster().request("/v3/lease/revoke", R"({"ID":"4712"})");
  EXPECT_TRUE(granted(direct->acquire(upgrade)));
}

TEST_F(EtcdShares, TheFirstHolderNamesTheLimit) {
  ASSERT_TRUE(granted(direct->acquire(sharer(1, 5).request())));
  ASSERT_NE(cluster().request("/v3/lease/grant", R"({"TTL":"600","ID":"4713"})").find("4713"),
            std::string::npos);
  const std::string value = std::string(32, 'a') + "@web:1@";
  cluster().put("/lockkeeper/locks/" + key + "/3", value + "2/8",
                4713);  // as one that is about to be withdrawn
  EXPECT_TRUE(granted(direct->acquire(sharer(1, 5).request())));
  EXPECT_THROW((void)direct->acquire(sharer(1, 8).request()), ConfigError);
  (void)cluster().request("/v3/lease/revoke", R"({"ID":"4713"})");
}

TEST_F(EtcdShares, OneThatWaitsForAnotherLimitIsNotPassedOver) {
  ASSERT_NE(cluster().request("/v3/lease/grant", R"({"TTL":"600","ID":"4714"})").find("4714"),
            std::string::npos);
  const std::string value = std::string(32, 'a') + "@web:1@";
  cluster().put("/lockkeeper/locks/" + key + "/~1", value + "1/5?", 4714);
  cluster().put("/lockkeeper/locks/" + key + "/~2", value + "1/5", 4714);
  EXPECT_FALSE(granted(direct->acquire(sharer(1, 8).request())));
  EXPECT_TRUE(granted(direct->acquire(sharer(1, 5).request())));
  (void)cluster().request("/v3/lease/revoke", R"({"ID":"4714"})");
}

TEST_F(EtcdShares, NoHolderLosesItsShareWhenThereAreFewerPermits) {
  constexpr std::uint32_t many = 50;  // more than one transaction changes
  std::vector<Claimant> holding;
  for (std::uint32_t i = 0; i < many; ++i) {
    holding.push_back(sharer(1 + i % 2, 2 * many));
    ASSERT_TRUE(granted(direct->acquire(holding.back().request())));
  }
  ASSERT_TRUE(capability<Permits>(*direct)->resize(key, 2, soon()));
  EXPECT_EQ(holders(), many);
  for (const Holder& each : capability<Permits>(*direct)->shareHolders(key, soon())) {
    EXPECT_EQ(each.share->limit, 2U);
  }
  const auto elsewhere = open();
  std::vector<Renewal> renewals;
  for (const Claimant& each : holding) renewals.push_back({.claim = each.claim(), .ttl = 2 * longTtl});
  direct->renew(renewals, soon());
  for (const Renewal& each : renewals) EXPECT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
  EXPECT_TRUE(granted(direct->acquire(holding[0].request(soon(), true)))) << "again";
  EXPECT_FALSE(granted(direct->acquire(sharer(1, 2).request())));
  for (std::size_t i = 0; i < many; ++i) {
    LockDriver& driver = i % 2 == 0 ? *direct : *elsewhere;
    EXPECT_EQ(driver.release(holding[i].claim(), soon()), ReleaseOutcome::released) << i;
  }
  EXPECT_TRUE(nothingStored());
}

TEST_F(EtcdShares, AllOfManyHoldersAreShownAndBroken) {
  constexpr std::uint32_t many = 300;  // more than are read at a time
  for (std::uint32_t i = 0; i < many; ++i) {
    ASSERT_TRUE(granted(direct->acquire(sharer(1 + i % 2, 2 * many).request())));
  }
  EXPECT_EQ(holders(), many);
  EXPECT_TRUE(capability<Permits>(*direct)->resize(key, 3 * many, soon()));
  for (const Holder& each : capability<Permits>(*direct)->shareHolders(key, soon())) {
    EXPECT_EQ(each.share->limit, 3 * many);
  }
  EXPECT_TRUE(capability<Breakable>(*direct)->breakLock(key, soon()));
  EXPECT_TRUE(nothingStored());
}

TEST_F(EtcdShares, AShareThatIsBrokenIsLostAndTheOthersAreNot) {
  LockManager manager(direct);
  Semaphore semaphore(manager, key, 3);
  const Lock first = semaphore.acquire();
  const Lock second = semaphore.acquire();
  auto shown = capability<Permits>(*direct)->shareHolders(key, soon());
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_TRUE(capability<Breakable>(*direct)->breakLock(key, soon(), &shown[0]));
  EXPECT_TRUE(waitUntil([&] { return first.lost().stop_requested(); }));
  EXPECT_TRUE(second.valid());
  EXPECT_FALSE(capability<Breakable>(*direct)->breakLock(key, soon(), &shown[0])) << "it has gone";
  EXPECT_TRUE(capability<Breakable>(*direct)->breakLock(key, soon()));
  EXPECT_TRUE(waitUntil([&] { return second.lost().stop_requested(); }));
  EXPECT_TRUE(nothingStored());
}

}  // namespace
}  // namespace lockkeeper::test

// Holders of shares on etcd that die, and requests that the server gets late.

#include <list>
#include <numeric>
#include <random>
#include <thread>

#include "late_fixture.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/permit/semaphore.h"
#include "paused_reader.h"
#include "process.h"

namespace lockkeeper::test {
namespace {

class EtcdShareFaults : public EtcdLate {
 protected:
  std::uint32_t taken(const std::string& lock) const {
    const auto holders = capability<Permits>(*direct)->shareHolders(lock, soon());
    return std::accumulate(holders.begin(), holders.end(), std::uint32_t{0},
                           [](std::uint32_t sum, const Holder& each) { return sum + each.share->weight; });
  }
};

TEST_F(EtcdShareFaults, AShareThatWasGivenUpTakesNoPermit) {
  const Claimant who = sharer(1, 1);
  keepBack(aPut);
  expectDoubt([&] { return proxied->acquire(who.request()); });
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  sendLate();
  EXPECT_FALSE(direct->holder(key, soon()));
  EXPECT_TRUE(granted(direct->acquire(sharer(1, 1).request())));
}

TEST_F(EtcdShareFaults, AShareThatIsAskedForAgainAfterALostReplyIsTheSame) {
  const Claimant who = sharer(2, 3);
  ASSERT_TRUE(granted(direct->acquire(sharer(1, 3).request())));
  keepBack(aPut);
  expectDoubt([&] { return proxied->acquire(who.request()); });
  const std::string put = proxy.held();
  sendLate(put);  // its reply was lost
  ASSERT_EQ(taken(key), 3U);
  const auto fence = static_cast<Fence>(cluster().lastClaim(key).created);
  const AcquireResult again = proxied->acquire(who.request(soon(), true));
  ASSERT_TRUE(granted(again));
  EXPECT_EQ(std::get<Granted>(again).fence, fence);
  EXPECT_EQ(taken(key), 3U);
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(taken(key), 1U);
}

TEST_F(EtcdShareFaults, AShareThatMayHaveEnteredWithoutRoomIsNotGrantedLater) {
  const Claimant who = sharer(1, 1);
  keepBack(aPut);
  expectDoubt([&] { return proxied->acquire(who.request()); });
  const Claimant first = sharer(1, 1);
  ASSERT_TRUE(granted(direct->acquire(first.request())));
  sendLate();  // it enters behind the other one
  EXPECT_FALSE(granted(proxied->acquire(who.request(soon(), true))));
  EXPECT_EQ(taken(key), 1U);
  ASSERT_EQ(direct->release(first.claim(), soon()), ReleaseOutcome::released);
  EXPECT_FALSE(direct->holder(key, soon()));
}

TEST_F(EtcdShareFaults, AWithdrawalThatComesLateTakesNothingThatWasGrantedMeanwhile) {
  const Claimant first = sharer(1, 1);
  ASSERT_TRUE(granted(direct->acquire(first.request())));
  const Claimant who = sharer(1, 1);
  keepBack(aRevocation);
  expectDoubt([&] { return proxied->acquire(who.request()); });
  ASSERT_EQ(direct->release(first.claim(), soon()), ReleaseOutcome::released);
  ASSERT_TRUE(granted(direct->acquire(who.request(soon(), true))));
  const std::string late = proxy.held();
  ASSERT_NE(late.find("\r\n\r\n"), std::string::npos) << "something was kept back";
  (void)cluster().request("/v3/lease/revoke", late.substr(late.find("\r\n\r\n") + 4));
  EXPECT_EQ(taken(key), 1U);
  EXPECT_FALSE(granted(direct->acquire(sharer(1, 1).request())));
  EXPECT_EQ(direct->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(EtcdShareFaults, AConfirmationThatComesLateGrantsNothing) {
  const Claimant holds = sharer(1, 1);
  ASSERT_TRUE(granted(direct->acquire(holds.request())));
  const Claimant who = sharer(1, 1);
  keepBack(aPut, 1);  // after the one that enters the queue
  Result result = wait(who);
  ASSERT_TRUE(queued(1));
  ASSERT_EQ(direct->release(holds.claim(), soon()), ReleaseOutcome::released);
  expectDoubt([&] { return result.get(); });
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner) << "it has waited";
  sendLate();
  EXPECT_FALSE(direct->holder(key, soon()));
  EXPECT_TRUE(granted(direct->acquire(sharer(1, 1).request())));
}

TEST_F(EtcdShareFaults, AShareThatHasWaitedStaysOnItsLatestLease) {
  const Claimant who = sharer(1, 1);
  keepBack(aPut, 1);  // after the one that enters the queue
  expectDoubt([&] { return wait(who).get(); });
  ASSERT_TRUE(granted(direct->acquire(who.request(soon(), true))));
  const auto before = cluster().firstClaim(key);
  sendLate();
  EXPECT_EQ(cluster().firstClaim(key).lease, before.lease);
  EXPECT_EQ(direct->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(EtcdShareFaults, WhoWasGrantedMeanwhileIsNotSentBack) {
  Claimant upgrades = another();
  upgrades.share = upgradeableShare;
  ASSERT_TRUE(granted(direct->acquire(upgrades.request())));
  const Claimant writes = another();
  const Claimant reads = sharer(readerShare.weight, readerShare.limit);
  std::stop_source stop;
  const auto waitDirectly = [&](const Claimant& who) {
    return std::async(std::launch::async, [driver = direct, who, token = stop.get_token(), this] {
      const bool stops = !who.share;
      return capability<Waitable>(*driver)->acquireWaiting(who.request(), 1min,
                                                           stops ? token : stop_.get_token());
    });
  };
  Result writing = waitDirectly(writes);
  ASSERT_TRUE(queued(1));
  Result reading = waitDirectly(reads);
  ASSERT_TRUE(queued(2));
  Claimant rest = another();
  rest.share = restOfUpgradeable;
  AcquireRequest request = rest.request();
  request.ahead = true;
  keepBack(aRemoval);
  expectDoubt([&] { return proxied->acquire(request); });
  stop.request_stop();
  EXPECT_FALSE(granted(writing.get()));
  ASSERT_TRUE(granted(reading.get()));
  sendLate();
  Renewal renewal{.claim = reads.claim(), .ttl = longTtl};
  direct->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
  EXPECT_EQ(proxied->release(rest.claim(), soon()), ReleaseOutcome::notOwner);
}

TEST_F(EtcdShareFaults, AReaderThatStandsStillCountsForItsTtlAndIsTold) {
  LockManager manager(direct);
  expectAPausedReaderToLose({ETCD_PERMIT_MEMBER, cluster().uri(), "read"}, manager);
}

TEST_F(EtcdShareFaults, AfterRandomKillsTheCountIsExactWithinATtlAndTheStoreIsEmpty) {
  constexpr std::uint32_t limit = 5;
  std::mt19937 random{std::random_device{}()};
  const auto member = [&] {
    return Process({ETCD_PERMIT_MEMBER, cluster().uri(), std::to_string(1 + random() % 3)});
  };
  std::list<Process> members;
  for (int number = 0; number < 4; ++number) members.push_back(member());
  ASSERT_TRUE(waitUntil([&] { return taken("s") > 0; }));
  for (int kills = 0; kills < 25; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds{random() % 60});
    ASSERT_LE(taken("s"), 2 * limit + 3 * static_cast<std::uint32_t>(kills))
        << "those that hold, as many that leave again, and what newcomers had entered when they were killed";
    members.erase(std::next(members.begin(), static_cast<std::ptrdiff_t>(random() % members.size())));
    members.push_back(member());
  }
  members.clear();
  const Instant dead = now();
  // What held a share for a second has two, the least that this cluster gives; who waited has five.
  EXPECT_TRUE(waitUntil([&] { return taken("s") == 0; }, 10s));
  LockManager manager(direct);
  Semaphore semaphore(manager, "s", limit);
  auto all = semaphore.tryAcquire(limit, 20s);
  auto whole = manager.tryLock("k", {.waitFor = 20s});
  ASSERT_TRUE(all && whole);
  EXPECT_LT(now() - dead, 15s);
  EXPECT_EQ(taken("s"), limit);
  EXPECT_EQ(all->release(), ReleaseResult::released);
  EXPECT_EQ(whole->release(), ReleaseResult::released);
  EXPECT_EQ(cluster().firstClaim("s").created, 0);
  EXPECT_EQ(cluster().firstClaim("k").created, 0);
}

}  // namespace
}  // namespace lockkeeper::test

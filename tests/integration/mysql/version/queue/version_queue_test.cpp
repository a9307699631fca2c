// Those who wait for a key: who comes next, and what is left of one who has died or given up.

#include <Poco/Data/RecordSet.h>
#include <Poco/Data/Session.h>
#include <Poco/Data/Statement.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/permit/share.h"
#include "lockkeeper/permit/upgradeable_lock.h"
#include "no_files.h"
#include "succeeds_in_the_end.h"
#include "version/version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class VersionQueue : public VersionTest {
 protected:
  using Result = std::future<AcquireResult>;

  /// How long a mark keeps others out that is not written again. Who passes later does so because the machine
  /// has stood still.
  static constexpr auto markLasts = 1s;

  /// Waits on a thread of its own; `who` must outlive the result.
  static Result waitOnceAs(const Claimant& who, const std::shared_ptr<LockDriver>& driver,
                           std::chrono::milliseconds length = 1min, const std::stop_token& stop = {}) {
    return std::async(std::launch::async, [driver, length, stop, request = who.request()] {
      return capability<Waitable>(*driver)->acquireWaiting(request, length, stop);
    });
  }
  /// Asks again, as core does, when the server has ended its session: on a machine that stands still it is
  /// silent for too long.
  static Result waitAs(const Claimant& who, const std::shared_ptr<LockDriver>& driver,
                       std::chrono::milliseconds length = 1min) {
    return std::async(std::launch::async, [&who, driver, length] {
      const Instant end = in(length);
      AcquireResult result = Busy{};
      bool again = false;
      succeedsInTheEnd([&] {
        result = capability<Waitable>(*driver)->acquireWaiting(
            who.request(soon(), std::exchange(again, true)), std::max(end - now(), Instant::duration{0}), {});
      });
      return result;
    });
  }
  bool isMarked() {
    return store.ask(
               "SELECT COUNT(*) FROM lockkeeper_locks WHERE owner LIKE '%@_%' AND SUBSTRING_INDEX(owner, "
               "'@', -1) > TIMESTAMPDIFF(MICROSECOND, DATE'1970-01-01', UTC_TIMESTAMP(6))") != "0";
  }
  bool releases(const Claimant& who) {
    return store.direct->release(who.claim(), soon()) == ReleaseOutcome::released;
  }
  bool grants(const Claimant& who) { return granted(store.direct->acquire(who.request())); }

  /// Ends a claim that waits for its row, if there is one.
  bool endsAClaim() {
    const std::string claim = store.ask("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '" +
                                        store.database + "' AND INFO LIKE 'INSERT INTO `lockkeeper_locks`%'");
    if (!claim.empty()) store.server.execute("KILL QUERY " + claim);
    return !claim.empty();
  }

  /// Whether anybody who only tries gets the key, and gives it back.
  bool newcomerPasses() {
    bool passes = false;
    for (const auto& share :
         {std::optional<Share>(), std::optional(Share{1, 3}), std::optional(Share{3, 3})}) {
      const Claimant who = claimant(share);
      passes = (grants(who) && releases(who)) || passes;
    }
    const Claimant first = claimant();
    Claimant second;
    second.key = "l";
    const std::vector<AcquireRequest> both{first.request(), second.request()};
    const auto results = capability<Batchable>(*store.direct)->acquireInOrder(both);
    return (granted(results.front()) && releases(first) && releases(second)) || passes;
  }

  static Claimant claimant(std::optional<Share> share = {}) {
    Claimant who;
    who.key = "k";
    who.share = share;
    return who;
  }

  const std::shared_ptr<LockDriver> other = store.open();
};

TEST_P(VersionQueue, WhoOnlyTriesDoesNotGetAKeyThatSomebodyWaitsFor) {
  const Claimant holds = claimant();
  const Claimant waits = claimant();
  for (int turn = 0; turn < 10; ++turn) {
    const Instant began = now();
    ASSERT_TRUE(grants(holds));
    Result result = waitAs(waits, other);
    ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
    EXPECT_EQ(store.direct->holder("k", soon()).value().owner, "test:1") << "without the mark";
    ASSERT_TRUE(releases(holds));
    bool passed = false;
    do {
      passed = newcomerPasses() || passed;
      ASSERT_FALSE(passed && now() - began < markLasts);
    } while (result.wait_for(0s) != std::future_status::ready);
    ASSERT_TRUE(granted(result.get()));
    ASSERT_TRUE(releases(waits));
    EXPECT_FALSE(isMarked());
  }
}

TEST_P(VersionQueue, WhoGivesUpKeepsNobodyOut) {
  for (const auto& share : {std::optional<Share>(), std::optional(Share{1, 3})}) {
    const Claimant holds = claimant(share);
    ASSERT_TRUE(grants(holds));
    for (const auto& waiting : {std::optional<Share>(), std::optional(Share{3, 3})}) {
      const Claimant waits = claimant(waiting);
      EXPECT_FALSE(granted(waitAs(waits, other, 50ms).get()));
      EXPECT_FALSE(isMarked());
    }
    ASSERT_TRUE(releases(holds));
    const Claimant next = claimant();
    EXPECT_TRUE(grants(next));
    EXPECT_TRUE(releases(next));
  }
}

TEST_P(VersionQueue, AFirstWaiterThatDiesHoldsUpTheOthersForASecondAtMost) {
  const Claimant holds = claimant();
  const Claimant dies = claimant();
  const Claimant next = claimant();
  ASSERT_TRUE(grants(holds));
  Result dead = waitOnceAs(dies, store.openProxied());
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  Result result = waitAs(next, other);
  ASSERT_TRUE(waitUntil([&] { return !store.server.waitingFor("queue%").empty(); }));
  store.proxy.endConnections(Ending::rst);
  EXPECT_THROW((void)dead.get(), Error);
  ASSERT_TRUE(waitUntil([&] { return store.server.waitingFor("queue%").empty(); }))
      << "the next is the first";
  ASSERT_TRUE(releases(holds));
  EXPECT_TRUE(granted(result.get()));
  ASSERT_TRUE(releases(next));
  // And now one that has left nobody behind.
  ASSERT_TRUE(grants(holds));
  Result last = waitOnceAs(dies, store.openProxied());
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  store.proxy.endConnections(Ending::rst);
  EXPECT_THROW((void)last.get(), Error);
  ASSERT_TRUE(releases(holds));
  const Instant released = now();
  EXPECT_TRUE(waitUntil([&] { return grants(next); }));
  EXPECT_LE(now() - released, 1s + schedulingSlack);
  EXPECT_TRUE(releases(next));
}

// As when the server lets no more clients in.
TEST_P(VersionQueue, AWaiterThatGivesUpLeavesTheQueueAlsoWhenItCannotTellTheServer) {
  const Claimant holds = claimant();
  const Claimant next = claimant();
  const Claimant givesUp = claimant();
  ASSERT_TRUE(grants(holds));
  Result first = waitAs(next, other);
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  std::stop_source stop;
  Result second = waitOnceAs(givesUp, store.openProxied(), 1min, stop.get_token());
  ASSERT_TRUE(waitUntil([&] { return !store.server.waitingFor("queue%").empty(); }));
  store.proxy.leadTo(1);  // nobody listens there
  stop.request_stop();
  EXPECT_FALSE(granted(second.get()));
  EXPECT_TRUE(waitUntil([&] { return store.server.waitingFor("queue%").empty(); }));
  EXPECT_TRUE(releases(holds));
  EXPECT_TRUE(granted(first.get()));
}

TEST_P(VersionQueue, AStopEndsTheWaitAlsoWhereNoFileIsLeft) {
  const Claimant holds = claimant();
  const Claimant waits = claimant();
  ASSERT_TRUE(grants(holds));
  const auto driver = store.open();
  Result before = waitAs(waits, driver);
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  ASSERT_TRUE(releases(holds));
  ASSERT_TRUE(granted(before.get())) << "its sessions are open from now on";
  const Claimant next = claimant();
  Result first = waitAs(next, other);
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  Poco::Data::Session asking = store.session();
  const auto stands = [&] {
    const Poco::Data::RecordSet rows(
        asking, "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'");
    return rows.value(0, 0).convert<int>() == 1;
  };
  const Claimant stopped = claimant();
  std::stop_source stop;
  std::optional<NoFiles> none(std::in_place);
  Result second = waitOnceAs(stopped, driver, 1min, stop.get_token());
  EXPECT_TRUE(waitUntil(stands));
  stop.request_stop();
  EXPECT_EQ(second.wait_for(20s), std::future_status::ready);
  none.reset();
  EXPECT_TRUE(releases(waits));
  EXPECT_TRUE(granted(first.get()));
  EXPECT_TRUE(releases(next));
  EXPECT_FALSE(granted(second.get()));
}

// A claim for several permits waits for its turn, and those who want one come behind it.
TEST_P(VersionQueue, ClaimsOfSeveralPermitsAreNotPassedByThoseOfOne) {
  LockManager locks(store.direct);
  Semaphore permits(locks, "k", 3);
  std::vector<std::jthread> users;
  for (int number = 0; number < 6; ++number) {
    users.emplace_back([&](const std::stop_token& over) {
      while (!over.stop_requested()) {
        const auto held = permits.acquire();
        std::this_thread::sleep_for(2ms);
      }
    });
  }
  for (int round = 0; round < 5; ++round) EXPECT_TRUE(permits.tryAcquire(3, 20s));
}

TEST_P(VersionQueue, WithoutASessionToWaitOnAClaimIsMadeNowAndThen) {
  const auto narrow = store.open("connections=1");
  LockManager locks(narrow);
  std::vector<std::jthread> users;
  std::atomic<int> turns = 0;
  for (const char* key : {"a", "a", "b", "b", "c", "c"}) {
    users.emplace_back([&, key] {
      for (int round = 0; round < 5; ++round) {
        try {
          if (locks.tryLock(key, {.waitFor = 20s})) ++turns;
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      }
    });
  }
  users.clear();
  EXPECT_EQ(turns, 30);
}

TEST_P(VersionQueue, WaitsGoOnWhenTheServerHasEndedTheirSessions) {
  LockManager locks(store.direct);
  LockManager others(other);
  auto held = locks.lock("k");
  auto first = std::async(std::launch::async, [&] { return others.tryLock("k", {.waitFor = 1min}); });
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  ASSERT_GT(store.server.killSessions(), 0);
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_TRUE(first.get());
}

TEST_P(VersionQueue, AnUpgradeIsNotHeldUpByThoseWhoWait) {
  LockManager locks(store.direct);
  auto upgradeable = UpgradeableLock::lock(locks, "k");
  auto reading = locks.lockShared("k");
  const Claimant writer = claimant();
  Result writing = waitAs(writer, other);
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  auto upgraded = std::async(std::launch::async, [&] { return upgradeable.tryUpgrade(1min); });
  ASSERT_TRUE(waitUntil(
      [&] { return store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE owner LIKE '%@@%'") == "1"; }));
  EXPECT_EQ(reading.release(), ReleaseResult::released);
  EXPECT_TRUE(upgraded.get());
  EXPECT_TRUE(upgradeable.valid());
  EXPECT_EQ(writing.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(upgradeable.release(), ReleaseResult::released);
  EXPECT_TRUE(granted(writing.get()));
}

TEST_P(VersionQueue, ReadersThatWaitDoNotKeepAnUpgradeOut) {
  LockManager locks(store.direct);
  auto upgradeable = UpgradeableLock::lock(locks, "k");
  auto reading = locks.lockShared("k");
  auto upgraded = std::async(std::launch::async, [&] { return upgradeable.tryUpgrade(1min); });
  ASSERT_TRUE(waitUntil(
      [&] { return store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE owner LIKE '%@@%'") == "1"; }));
  const Instant began = now();
  const Claimant reader = claimant(readerShare);
  const bool passed = granted(waitAs(reader, other, 300ms).get());
  EXPECT_TRUE(!passed || releases(reader)) << "the upgrade cannot end";
  EXPECT_FALSE(passed && now() - began < markLasts);
  EXPECT_EQ(reading.release(), ReleaseResult::released);
  EXPECT_TRUE(upgraded.get());
  EXPECT_TRUE(upgradeable.valid());
}

TEST_P(VersionQueue, AnUpgradeThatNobodyHoldsUpKeepsNobodyOut) {
  LockManager locks(store.direct);
  auto upgradeable = UpgradeableLock::lock(locks, "k");
  upgradeable.upgrade();
  EXPECT_FALSE(isMarked());
  EXPECT_EQ(upgradeable.release(), ReleaseResult::released);
  EXPECT_TRUE(grants(claimant()));
}

// The label of a holder leaves no room for a mark behind it.
TEST_P(VersionQueue, ALongOwnerIsShortenedForTheMarkAndIsStillTheOwner) {
  ManagerOptions options;
  options.owner = std::string(64, 'o');
  LockManager locks(store.direct, options);
  Lock held = locks.lock("k");
  const auto before = locks.ownerToken(held);
  const Claimant waits = claimant();
  Result result = waitAs(waits, other);
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  EXPECT_EQ(store.direct->holder("k", soon()).value().owner, options.owner.substr(0, 46));
  for (const auto& token : {before, locks.ownerToken(held)}) {
    EXPECT_TRUE(token);
    if (!token) continue;
    LockManager child(withOwner(store.open(), {*token}, systemClock()));
    EXPECT_TRUE(child.tryLock("k"));
  }
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_TRUE(granted(result.get()));
}

// A claim that finds no session to wait on asks once, and leaves its mark behind.
TEST_P(VersionQueue, AMarkIsWrittenAgainLongBeforeItEnds) {
  const auto narrow = store.open("connections=1");
  Claimant elsewhere = claimant();
  elsewhere.key = "l";
  Claimant waitsElsewhere = claimant();
  waitsElsewhere.key = "l";
  ASSERT_TRUE(grants(elsewhere));
  Result result = waitAs(waitsElsewhere, narrow);
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  const Claimant holds = claimant();
  ASSERT_TRUE(grants(holds));
  store.server.execute("UPDATE " + store.database +
                       ".lockkeeper_locks SET owner = CONCAT('web-1:7@', 700000 + TIMESTAMPDIFF(MICROSECOND, "
                       "DATE'1970-01-01', UTC_TIMESTAMP(6))) WHERE lock_key = 'k'");
  const auto owner = [&] { return store.ask("SELECT owner FROM lockkeeper_locks WHERE lock_key = 'k'"); };
  const std::string before = owner();
  const Claimant waits = claimant();
  EXPECT_FALSE(granted(waitAs(waits, narrow).get()));
  EXPECT_GT(owner(), before);
  EXPECT_TRUE(releases(elsewhere));
  EXPECT_TRUE(granted(result.get()));
}

TEST_P(VersionQueue, AFirstOneWhoseClaimsFailAgainAndAgainLeavesAndSaysSo) {
  const Claimant holds = claimant();
  const Claimant waits = claimant();
  ASSERT_TRUE(grants(holds));
  Result result = waitOnceAs(waits, other);
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  Poco::Data::Session foreign = store.session();
  foreign.begin();
  foreign << "UPDATE lockkeeper_locks SET owner = 'dba'", Poco::Data::Keywords::now;
  EXPECT_TRUE(waitUntil([&] {
    (void)endsAClaim();
    return result.wait_for(0s) == std::future_status::ready;
  }));
  foreign.rollback();
  EXPECT_TRUE(releases(holds));
  EXPECT_THROW((void)result.get(), StoreUnavailable);
}

TEST_P(VersionQueue, AWaitWhoseLastClaimHasFailedEndsWithThatError) {
  const Claimant holds = claimant();
  const Claimant waits = claimant();
  ASSERT_TRUE(grants(holds));
  std::stop_source stop;
  Result result = waitOnceAs(waits, other, 1min, stop.get_token());
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  Poco::Data::Session foreign = store.session();
  foreign.begin();
  foreign << "UPDATE lockkeeper_locks SET owner = 'dba'", Poco::Data::Keywords::now;
  EXPECT_TRUE(waitUntil([&] { return endsAClaim(); }));
  stop.request_stop();
  EXPECT_THROW((void)result.get(), StoreUnavailable);
  foreign.rollback();
  EXPECT_TRUE(releases(holds));
}

TEST_P(VersionQueue, WhereAProxyRefusesNamesWithANumberOfItsOwnAllAreFirst) {
  const auto proxied = store.openProxied();
  const Claimant holds = claimant();
  const Claimant waits = claimant();
  const Instant began = now();
  ASSERT_TRUE(grants(holds));
  std::stop_source stop;
  Result opening = waitOnceAs(waits, proxied, 1min, stop.get_token());
  ASSERT_TRUE(waitUntil([&] { return isMarked(); }));
  stop.request_stop();
  EXPECT_FALSE(granted(opening.get())) << "now its sessions are open";
  // It tries, makes the session ready, and asks for the name.
  store.proxy.set({.kind = ProxyFault::Kind::replace, .text = DatabaseServer::refusal(1105), .requests = 2});
  Result result = waitOnceAs(waits, proxied);
  EXPECT_TRUE(waitUntil([&] { return store.proxy.fired() == 1; }));
  EXPECT_TRUE(releases(holds));
  const bool goesOn = granted(result.get());
  EXPECT_TRUE(!goesOn || releases(waits));
  EXPECT_TRUE(goesOn || now() - began >= markLasts);
}

// Written by hand, or by a program that knows nothing of marks.
TEST_P(VersionQueue, AForeignOwnerWithAnAtSignIsNoMark) {
  const Claimant holds = claimant();
  for (const char* owner : {"dba@host", "dba@", "@", "@@", "dba@17e3", "dba@9223372036854775808"}) {
    ASSERT_TRUE(grants(holds));
    store.server.execute("UPDATE " + store.database + ".lockkeeper_locks SET owner = '" + owner + "'");
    const Claimant waits = claimant();
    EXPECT_FALSE(granted(waitAs(waits, other, 50ms).get()));
    ASSERT_TRUE(releases(holds));
    const Claimant reader = claimant(Share{1, 3});
    EXPECT_TRUE(grants(reader)) << owner;
    EXPECT_TRUE(releases(reader));
  }
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionQueue, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

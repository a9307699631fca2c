// Several keys that are locked together on version rows.

#include <Poco/Data/Session.h>
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <future>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/base/key.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/lock_manager.h"
#include "process.h"
#include "succeeds_in_the_end.h"
#include "temp_folder.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class VersionSeveralKeys : public VersionTest {
 protected:
  /// Claims of these keys, which must come in the order of their bytes.
  static std::vector<Claimant> claimantsOf(std::initializer_list<const char*> keys) {
    std::vector<Claimant> all;
    for (const char* key : keys) all.push_back({.key = key});
    return all;
  }
  static std::vector<AcquireRequest> requestsOf(const std::vector<Claimant>& all) {
    std::vector<AcquireRequest> requests;
    for (const Claimant& each : all) requests.push_back(each.request());
    return requests;
  }
  static std::vector<Claim> claimsOf(const std::vector<Claimant>& all) {
    std::vector<Claim> claims;
    for (const Claimant& each : all) claims.push_back(each.claim());
    return claims;
  }
  static std::vector<AcquireResult> take(LockDriver& driver, const std::vector<Claimant>& all) {
    return capability<Batchable>(driver)->acquireInOrder(requestsOf(all));
  }
  static std::vector<ReleaseOutcome> release(LockDriver& driver, const std::vector<Claimant>& all) {
    return capability<BatchReleasing>(driver)->releaseAll(claimsOf(all), soon());
  }
  std::size_t held(const std::vector<Claimant>& all) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [&](const Claimant& each) { return !store.isFree(each.key); }));
  }
  std::int64_t deadlocks() const {
    return std::stoll(
        store.ask(GetParam() == Brand::mariadb
                      ? "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = "
                        "'Innodb_deadlocks'"
                      : "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_deadlocks'"));
  }
  Process member(const TempFolder& folder, int rounds, const std::vector<std::string>& keys) const {
    const std::string uri = DatabaseServer::uri(store.database, store.server.port());
    std::vector<std::string> command{SET_MEMBER, "mysql+version" + uri.substr(uri.find("://")),
                                     folder.path().string(), std::to_string(rounds)};
    command.insert(command.end(), keys.begin(), keys.end());
    return Process(command);
  }
};

TEST_P(VersionSeveralKeys, TakeTwoRoundTripsHoweverManyTheyAreAndTwoToBeFreed) {
  LockManager manager(store.openProxied());
  { const LockSet first = manager.lockAll({"x", "y"}); }
  std::vector<std::string> keys;
  for (int number = 0; number < 500; ++number) keys.push_back("k" + std::to_string(number));
  for (const std::size_t count : {2U, 500U}) {
    store.proxy.passThrough();
    LockSet set = manager.lockAll(std::span(keys).first(count), {.ttl = longTtl});
    EXPECT_EQ(store.proxy.requests(), 2U);
    EXPECT_EQ(set.release(), ReleaseResult::released);
    // And now and then a look at a few unused rows.
    EXPECT_THAT(store.proxy.requests(), ::testing::AnyOf(4U, 5U));
    { const LockSet again = manager.lockAll(std::span(keys).first(count), {.ttl = longTtl}); }
    EXPECT_THAT(store.proxy.requests(), ::testing::AllOf(::testing::Ge(8U), ::testing::Le(10U)))
        << "the destructor, too";
  }
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE token <> ''"), "0");
}

TEST_P(VersionSeveralKeys, EachHasAFenceOfItsOwnThatGoesOn) {
  LockManager manager(store.direct);
  const auto first = manager.lock("b").fence();
  LockSet set = manager.lockAll({"a", "b", "c"});
  EXPECT_EQ(*set.fence("b"), *first + 1);
  const auto before = set.fence("c");
  EXPECT_EQ(set.release(), ReleaseResult::released);
  EXPECT_EQ(manager.lock("c").fence(), *before + 1);
}

// The view's function sets the session's time back once the statement that looks for busy keys
// has seen "b", which is free by then: at "d", which is busy.
TEST_P(VersionSeveralKeys, AServerClockThatGoesBackWithinAClaimRepeatsNoFence) {
  if (GetParam() == Brand::mysql) GTEST_SKIP() << "makes no function by a prepared statement, as Poco does";
  const Claimant former{.key = "b"};
  AcquireRequest brief = former.request();
  brief.ttl = 20ms;
  const AcquireResult first = store.direct->acquire(brief);
  ASSERT_TRUE(granted(first));
  ASSERT_TRUE(waitUntil([&] { return store.isFree("b"); }));
  const Claimant busy{.key = "d"};
  ASSERT_TRUE(granted(store.direct->acquire(busy.request())));
  const std::string in = store.database + ".";
  store.server.execute("RENAME TABLE " + in + "lockkeeper_locks TO " + in + "behind_view");
  store.server.execute("CREATE FUNCTION " + in +
                       "step(k VARBINARY(512)) RETURNS INT NO SQL BEGIN IF k = 'd' THEN SET SESSION "
                       "timestamp = UNIX_TIMESTAMP() - 60; END IF; RETURN 1; END");
  store.server.execute("CREATE VIEW " + in + "lockkeeper_locks AS SELECT * FROM " + in +
                       "behind_view WHERE " + in + "step(lock_key)");
  const auto taken = take(*store.direct, claimantsOf({"b", "d"}));
  ASSERT_EQ(taken.size(), 2U);
  ASSERT_TRUE(granted(taken[0]));
  EXPECT_FALSE(granted(taken[1]));
  EXPECT_GT(*std::get<Granted>(taken[0]).fence, *std::get<Granted>(first).fence);
}

TEST_P(VersionSeveralKeys, AKeyWhoseLeaseHasEndedOrThatIsSharedIsWhatItIsForOneClaim) {
  auto all = claimantsOf({"a", "b", "c"});
  const Claimant former{.key = "a"};
  AcquireRequest brief = former.request();
  brief.ttl = 20ms;
  ASSERT_TRUE(granted(store.direct->acquire(brief)));
  Claimant sharer{.key = "c"};
  sharer.share = Share{1, 3};
  ASSERT_TRUE(granted(store.direct->acquire(sharer.request())));
  ASSERT_TRUE(waitUntil([&] { return store.isFree("a"); }));
  const auto results = take(*store.direct, all);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(granted(results[0]));
  EXPECT_TRUE(granted(results[1]));
  ASSERT_FALSE(granted(results[2]));
  EXPECT_GT(std::get<Busy>(results[2]).retryAfter, longTtl / 2);
  EXPECT_EQ(store.direct->release(sharer.claim(), soon()), ReleaseOutcome::released);
}

TEST_P(VersionSeveralKeys, AsManyOfTheLongestKeysAsCoreAsksForAreTakenAndFreed) {
  std::vector<Claimant> all(1000);
  for (std::size_t number = 0; number < all.size(); ++number) {
    all[number].key = std::to_string(1000 + number);
    all[number].key.resize(maxKeyBytes, 'x');
  }
  std::vector<AcquireRequest> requests;
  for (const Claimant& each : all) requests.push_back(each.request(in(1min)));
  const auto results = capability<Batchable>(*store.direct)->acquireInOrder(requests);
  ASSERT_EQ(results.size(), all.size());
  for (const AcquireResult& each : results) ASSERT_TRUE(granted(each));
  const auto released = capability<BatchReleasing>(*store.direct)->releaseAll(claimsOf(all), in(1min));
  for (const ReleaseOutcome each : released) ASSERT_EQ(each, ReleaseOutcome::released);
}

TEST_P(VersionSeveralKeys, AReplyToAClaimThatIsCutAnywhereLeavesAllHeldOrAllFree) {
  const auto driver = store.openProxied();
  std::size_t cuts = 0;
  std::size_t unavailable = 0;
  for (std::size_t bytes = 0; bytes < 2000; ++bytes) {
    SCOPED_TRACE("cut after " + std::to_string(bytes) + " bytes");
    const auto all = claimantsOf({"a", "b", "c"});
    ASSERT_NO_THROW((void)driver->holder("connects again", soon()));
    store.proxy.cutReplies(bytes, cuts % 2 == 0 ? Ending::fin : Ending::rst);
    std::size_t taken = 0;
    std::optional<ErrorCode> said;
    try {
      taken = take(*driver, all).size();
    } catch (const Error& error) {
      said = error.code();
    }
    const bool hit = store.proxy.fired() > 0;
    ASSERT_EQ(said.has_value(), hit) << "no cut passes for an answer";
    if (!hit) {
      EXPECT_EQ(taken, all.size());
      EXPECT_GT(cuts, 100U);
      EXPECT_GT(unavailable, 3U);
      return;
    }
    ++cuts;
    if (said == ErrorCode::storeUnavailable) {
      ++unavailable;
      ASSERT_EQ(held(all), 0U) << "nothing had been asked for";
    } else {
      ASSERT_EQ(said, ErrorCode::outcomeUnknown);
      // The server may still be at it.
      const auto again = take(*store.direct, all);
      ASSERT_EQ(again.size(), all.size()) << "they are ours, or free";
      ASSERT_TRUE(granted(again.back()));
      ASSERT_EQ(release(*store.direct, all), std::vector(all.size(), ReleaseOutcome::released));
    }
  }
  FAIL() << "the reply never passed whole";
}

TEST_P(VersionSeveralKeys, RepliesThatAreCutAnywhereCostAManagerNoKey) {
  LockManager manager(store.openProxied());
  const auto all = claimantsOf({"a", "b"});
  std::size_t cuts = 0;
  std::size_t unavailable = 0;
  for (std::size_t bytes = 0; bytes < 2000; bytes += 3) {
    SCOPED_TRACE("cut after " + std::to_string(bytes) + " bytes");
    (void)manager.holder("connects again");
    store.proxy.cutReplies(bytes, Ending::fin);
    try {
      auto set = manager.tryLockAll({"a", "b"});
      ASSERT_TRUE(set) << "nobody else holds a key";
      if (set->release() != ReleaseResult::released) ++unavailable;
    } catch (const StoreUnavailable&) {
      ++unavailable;
    }
    ASSERT_TRUE(waitUntil([&] { return held(all) == 0; }));
    if (store.proxy.fired() == 0) {
      EXPECT_GT(cuts, 50U);
      // A claim or a release that was sent is asked for again; before, there are two short replies.
      EXPECT_LT(unavailable, 20U);
      return;
    }
    ++cuts;
  }
  FAIL() << "the replies never passed whole";
}

TEST_P(VersionSeveralKeys, AClientThatStandsStillKeepsNoRow) {
  const auto driver = store.openProxied("ioTimeout=1s");
  (void)driver->holder("connects", soon());
  store.proxy.set({.kind = ProxyFault::Kind::hold, .text = "COMMIT"});
  const auto all = claimantsOf({"a", "b"});
  auto taking =
      std::async(std::launch::async, [&] { EXPECT_THROW((void)take(*driver, all), OutcomeUnknown); });
  ASSERT_TRUE(waitUntil([&] { return store.proxy.fired() == 1; }));
  const Claimant other{.key = "a"};
  const Instant began = now();
  EXPECT_TRUE(granted(store.direct->acquire(other.request())));
  EXPECT_LT(now() - began, 1s + schedulingSlack);
  store.proxy.endConnections(Ending::rst);
  taking.get();
  EXPECT_EQ(store.direct->release(other.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(held(all), 0U);
}

TEST_P(VersionSeveralKeys, ARowThatSomebodyKeepsIsWaitedForBrieflyAndTheOthersAreLetGo) {
  const auto all = claimantsOf({"a", "b", "c"});
  take(*store.direct, all);
  release(*store.direct, all);
  LockManager manager(store.direct);
  Poco::Data::Session sql = store.session();
  sql.begin();
  sql << "SELECT 1 FROM lockkeeper_locks WHERE lock_key = 'b' FOR UPDATE", Poco::Data::Keywords::now;
  const Instant began = now();
  EXPECT_THROW((void)manager.tryLockAll({"a", "b", "c"}), StoreUnavailable);
  EXPECT_LT(now() - began, 2s + schedulingSlack);
  const Claimant other{.key = "a"};
  const Instant asked = now();
  EXPECT_TRUE(granted(store.direct->acquire(other.request()))) << "its row is kept by nobody";
  EXPECT_LT(now() - asked, 1s + schedulingSlack);
  EXPECT_EQ(store.direct->release(other.claim(), soon()), ReleaseOutcome::released);
  auto waiting = std::async(std::launch::async, [&] { return manager.lockAll({"a", "b", "c"}); });
  ASSERT_TRUE(waitUntil([&] { return !store.isFree("a"); })) << "key by key";
  sql.rollback();
  LockSet set = waiting.get();
  EXPECT_TRUE(set.valid());
  EXPECT_EQ(set.release(), ReleaseResult::released);
}

TEST_P(VersionSeveralKeys, ASetOfWhichOneWasTakenAwaySaysSoAndFreesTheOthers) {
  LockManager manager(store.direct);
  LockSet set = manager.lockAll({"a", "b", "c"});
  ASSERT_TRUE(capability<Breakable>(*store.direct)->breakLock("b", soon()));
  const Claimant other{.key = "b"};
  ASSERT_TRUE(granted(store.direct->acquire(other.request())));
  EXPECT_EQ(set.release(), ReleaseResult::notOwner);
  EXPECT_TRUE(store.isFree("a"));
  EXPECT_TRUE(store.isFree("c"));
  EXPECT_EQ(store.direct->release(other.claim(), soon()), ReleaseOutcome::released);
}

TEST_P(VersionSeveralKeys, OfAHolderThatIsGoneAreFreeWhenTheirLeaseHasEnded) {
  const auto all = claimantsOf({"a", "b", "c"});
  {
    const auto driver = store.open();  // without a manager, nobody releases what it has taken
    auto requests = requestsOf(all);
    for (AcquireRequest& each : requests) each.ttl = 1500ms;
    for (const AcquireResult& each : capability<Batchable>(*driver)->acquireInOrder(requests)) {
      ASSERT_TRUE(granted(each));
    }
  }
  EXPECT_FALSE(store.isFree("b"));
  LockManager manager(store.direct);
  EXPECT_FALSE(manager.tryLockAll({"b", "z"}));
  EXPECT_TRUE(store.isFree("z"));
  EXPECT_TRUE(manager.tryLockAll({"a", "b", "c"}, {.waitFor = 1min}));
}

// New keys, again and again, because a row that is made is where transactions block each other the soonest.
TEST_P(VersionSeveralKeys, SetsSingleClaimsSharesAndRenewalsOfTheSameKeysMakeNoDeadlock) {
  constexpr int rounds = 40;
  constexpr std::size_t setSize = 30;
  const auto driver = store.open("connections=16");
  const auto keysOf = [](int round, std::size_t first) {
    std::vector<Claimant> all(setSize);
    for (std::size_t index = 0; index < setSize; ++index)
      all[index].key = std::to_string(round / 4) + "/" + std::to_string(100 + first + index);
    return all;
  };
  std::vector<Claimant> sharers = claimantsOf({"0/115", "0/125", "3/118", "6/142", "9/130"});
  for (Claimant& each : sharers) {
    each.share = Share{1, 3};
    ASSERT_TRUE(granted(driver->acquire(each.request())));
  }
  const std::int64_t before = deadlocks();
  std::atomic<int> errors{0};
  std::atomic<int> wholeSets{0};
  const auto repeated = [&](auto work) {
    return std::jthread([&errors, work] {
      try {
        for (int round = 0; round < rounds; ++round) work(round);
      } catch (const std::exception& error) {
        if (errors++ == 0) ADD_FAILURE() << error.what();
      }
    });
  };
  {
    std::vector<std::jthread> threads;
    for (const std::size_t first : {0U, 10U, 20U, 0U, 10U, 20U}) {
      threads.push_back(repeated([&, first](int round) {
        const auto all = keysOf(round, first);
        // A row may be kept for longer than a call waits for it.
        succeedsInTheEnd([&] { wholeSets += granted(take(*driver, all).back()); });
        succeedsInTheEnd([&] { (void)release(*driver, all); });
      }));
    }
    for (int number = 0; number < 2; ++number) {
      threads.push_back(repeated([&](int round) {
        for (const Claimant& each : keysOf(round, 5)) {
          succeedsInTheEnd([&] { (void)driver->acquire(each.request()); });
          succeedsInTheEnd([&] { (void)driver->release(each.claim(), soon()); });
        }
      }));
    }
    threads.push_back(repeated([&](int round) {
      const auto all = keysOf(round, 15);
      std::vector<Renewal> renewals;
      for (const Claimant& each : all) renewals.push_back({.claim = each.claim(), .ttl = longTtl});
      driver->renew(renewals, soon());
      for (const Renewal& each : renewals) EXPECT_NE(each.outcome, RenewOutcome::renewed);
    }));
    threads.push_back(repeated([&](int) {
      std::vector<Renewal> renewals;
      for (const Claimant& each : sharers) renewals.push_back({.claim = each.claim(), .ttl = longTtl});
      driver->renew(renewals, soon());
      for (const Renewal& each : renewals) EXPECT_NE(each.outcome, RenewOutcome::notOwner);
    }));
  }
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(deadlocks(), before);
  EXPECT_GT(wholeSets, 0);
  for (const Claimant& each : sharers)
    EXPECT_EQ(driver->release(each.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE token <> ''"), "0");
}

TEST_P(VersionSeveralKeys, ProcessesThatTakeThemInOtherOrdersAllGoOn) {
  ASSERT_TRUE(store.isFree("makes the table"));
  const TempFolder folder;
  std::list<Process> members;
  members.push_back(member(folder, 60, {"a", "b", "c"}));
  members.push_back(member(folder, 60, {"c", "b", "a"}));
  members.push_back(member(folder, 60, {"b", "d", "c"}));
  members.push_back(member(folder, 60, {"d", "a"}));
  for (Process& each : members) EXPECT_EQ(each.waitFor(2min), 0);
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE token <> ''"), "0");
}

TEST_P(VersionSeveralKeys, ProcessesThatAreKilledAtAnyTimeKeepNothingBeyondTheirLease) {
  ASSERT_TRUE(store.isFree("makes the table"));
  const TempFolder folder;
  const std::vector<std::vector<std::string>> orders{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "d", "c"}};
  std::mt19937 random{std::random_device{}()};
  std::vector<std::unique_ptr<Process>> members;
  for (const auto& keys : orders) members.push_back(std::make_unique<Process>(member(folder, 0, keys)));
  for (int kills = 0; kills < 25; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds{random() % 200});
    for (const auto& each : members) ASSERT_TRUE(each->running()) << "its exit code says why";
    const std::size_t one = random() % members.size();
    members[one] = std::make_unique<Process>(member(folder, 0, orders[one]));
  }
  members.clear();
  const Instant dead = now();
  LockManager manager(store.direct);
  LockSet set = manager.lockAll({"a", "b", "c", "d"}, {.waitFor = 30s});
  EXPECT_LT(now() - dead, 6s + schedulingSlack) << "the ttl is six";
  EXPECT_EQ(set.release(), ReleaseResult::released);
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionSeveralKeys, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

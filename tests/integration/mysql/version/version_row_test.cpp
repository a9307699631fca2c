// What a lock's row does on the server: statements, deadlocks, clocks, secrets, purges.

#include <Poco/Data/Session.h>
#include <gmock/gmock.h>

#include <atomic>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using VersionRowOfLock = VersionTest;

TEST_P(VersionRowOfLock, TakingAndReleasingAFreeLockAreOneStatementEach) {
  LockManager manager(store.direct);
  { const Lock warm = manager.lock("k"); }
  constexpr int pairs = 50;
  // What a lock could send; the server counts it for everybody, and nobody else is there.
  const std::vector<std::string> kinds{"Com_insert", "Com_update", "Com_select",
                                       "Com_delete", "Com_begin",  "Com_commit"};
  const auto count = [&] {
    std::int64_t sum = 0;
    for (const std::string& kind : kinds) sum += store.status(kind);
    return sum;
  };
  const std::int64_t before = count();
  for (int i = 0; i < pairs; ++i) const Lock lock = manager.lock("k");
  EXPECT_GE(count() - before, 2 * pairs);
  EXPECT_LE(count() - before, 2 * pairs + 2) << "a look for rows that nobody uses any more, and its COMMIT";
}

TEST_P(VersionRowOfLock, AGrantOfSeveralTurnsReservesTheirFencesInItsOneStatement) {
  const Claimant who{};
  AcquireRequest request = who.request();
  request.localHolders = 8;
  const auto acquire = [&] { return std::get<Granted>(store.direct->acquire(request)); };
  const Granted first = acquire();
  EXPECT_EQ(first.localHolders, 8U);
  EXPECT_EQ(store.direct->holder(who.key, soon())->fence, *first.fence + 7);
  ASSERT_EQ(store.direct->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(*acquire().fence, *first.fence + 8);
  request.resend = true;
  const Granted again = acquire();
  EXPECT_EQ(*again.fence, *first.fence + 15) << "the last one: the others are perhaps used";
  EXPECT_EQ(again.localHolders, 1U);
}

TEST_P(VersionRowOfLock, TheFirstTouchOfNewKeysMakesNoDeadlock) {
  constexpr int clients = 16;
  constexpr int keys = 1000;
  std::vector<std::atomic<int>> grants(keys);
  std::atomic<int> errors{0};
  std::barrier start(clients);
  {
    std::vector<std::jthread> threads;
    for (int client = 0; client < clients; ++client) {
      threads.emplace_back([&, client] {
        const auto driver = store.open("connections=1");
        Claimant who;
        (void)driver->holder("connects", soon());
        start.arrive_and_wait();
        for (int step = 0; step < keys; ++step) {
          // Two at a time meet at a key; the others touch its neighbours.
          const int i = (step * (client / 2 % 2 == 0 ? 1 : keys - 1) + client / 4 * 7) % keys;
          who.key = "new-" + std::to_string(i);
          try {
            if (granted(driver->acquire(who.request()))) ++grants[static_cast<std::size_t>(i)];
          } catch (const Error& error) {
            if (errors++ == 0) ADD_FAILURE() << error.what();
          }
        }
      });
    }
  }
  EXPECT_EQ(errors, 0);
  for (const auto& each : grants) EXPECT_EQ(each, 1);
}

// Why a claim is one statement: in two, both lock the gap in which the row will be, and each waits for the
// other to leave it.
TEST_P(VersionRowOfLock, LookingFirstAndInsertingThenMakesDeadlocks) {
  (void)store.direct->holder("makes the table", soon());
  std::atomic<int> deadlocks{0};
  std::barrier looked(2);
  const auto claim = [&] {
    Poco::Data::Session sql = store.session();
    sql.begin();
    sql << "SELECT version FROM lockkeeper_locks WHERE lock_key = 'new' FOR UPDATE",
        Poco::Data::Keywords::now;
    looked.arrive_and_wait();
    try {
      sql << "INSERT IGNORE INTO lockkeeper_locks VALUES ('new', 1, '', '', UTC_TIMESTAMP(6))",
          Poco::Data::Keywords::now;
      sql.commit();
    } catch (const Poco::Exception& error) {
      if (error.message().find("errno]: 1213") != std::string::npos) ++deadlocks;
      sql.rollback();
    }
  };
  {
    const std::jthread one(claim);
    const std::jthread other(claim);
  }
  EXPECT_EQ(deadlocks, 1);
}

TEST_P(VersionRowOfLock, LeasesDoNotDependOnTheServersTimeZone) {
  const Claimant who{};
  ASSERT_TRUE(granted(store.direct->acquire(who.request())));
  store.server.execute("SET GLOBAL time_zone = '-11:30'");
  const auto elsewhere = store.open();
  const auto held = elsewhere->holder(who.key, soon());
  ASSERT_TRUE(held);
  EXPECT_LE(*held->remaining, longTtl);
  EXPECT_GT(*held->remaining, longTtl - 1min);
  const Claimant next{};
  ASSERT_TRUE(granted(elsewhere->acquire(next.request())));
  store.server.execute("SET GLOBAL time_zone = SYSTEM");
  const auto seen = store.direct->holder(next.key, soon());
  ASSERT_TRUE(seen);
  EXPECT_LE(*seen->remaining, longTtl);
  EXPECT_GT(*seen->remaining, longTtl - 1min);
}

TEST_P(VersionRowOfLock, AnsweringBusyTellsWhenTheLeaseEnds) {
  Claimant holder;
  ASSERT_TRUE(granted(store.direct->acquire(holder.request())));
  Claimant other{.key = holder.key};
  const AcquireResult result = store.direct->acquire(other.request());
  ASSERT_TRUE(std::holds_alternative<Busy>(result));
  const auto retryAfter = std::get<Busy>(result).retryAfter;
  ASSERT_TRUE(retryAfter);
  EXPECT_LE(*retryAfter, longTtl);
  EXPECT_GT(*retryAfter, longTtl - 1min);
}

TEST_P(VersionRowOfLock, FencesGoOnAfterTheRowWasPurged) {
  Fence highest = 0;
  for (int i = 0; i < 5; ++i) {
    const Claimant who{.key = "k"};
    const AcquireResult result = store.direct->acquire(who.request());
    ASSERT_TRUE(granted(result));
    EXPECT_GT(std::get<Granted>(result).fence, highest);
    highest = *std::get<Granted>(result).fence;
    ASSERT_EQ(store.direct->release(who.claim(), soon()), ReleaseOutcome::released);
    if (i % 2 == 0) store.server.execute("DELETE FROM " + store.database + ".lockkeeper_locks");
  }
}

TEST_P(VersionRowOfLock, RowsThatNobodyHasUsedForADayAreDeletedBesideReleases) {
  const Claimant held{};
  ASSERT_TRUE(granted(store.direct->acquire(held.request())));
  Poco::Data::Session sql = store.session();
  using Poco::Data::Keywords::now;
  const auto row = [&](const std::string& key, const std::string& hours) {
    sql << "INSERT INTO lockkeeper_locks VALUES ('" + key + "', 1, '', '', UTC_TIMESTAMP(6) - INTERVAL " +
               hours + " HOUR)",
        now;
  };
  for (int i = 0; i < 300; ++i) row("a-" + std::to_string(i), "25");
  row("b-fresh", "23");
  row("c-kept", "25");
  row("d-after", "25");
  Poco::Data::Session other = store.session();
  other.begin();
  other << "SELECT version FROM lockkeeper_locks WHERE lock_key = 'c-kept' FOR UPDATE", now;
  const auto rows = [&](const std::string& which) {
    return store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE lock_key LIKE '" + which + "'");
  };
  const auto use = [&](const std::string& until) {
    // All rows twice, a page after each hundred releases.
    for (int pair = 0; pair < 800 && rows(until) != "0"; ++pair) {
      const Claimant who{.key = "used"};
      ASSERT_TRUE(granted(store.direct->acquire(who.request())));
      ASSERT_EQ(store.direct->release(who.claim(), soon()), ReleaseOutcome::released);
    }
  };
  use("d-after");
  EXPECT_EQ(rows("a-%"), "0");
  EXPECT_EQ(rows("b-fresh"), "1") << "a row that comes back must begin above the versions that it had";
  EXPECT_EQ(rows("c-kept"), "1") << "nobody waits for a row that others keep";
  EXPECT_EQ(rows("d-after"), "0");
  other.rollback();
  use("c-kept");
  EXPECT_EQ(rows("c-kept"), "0");
  EXPECT_EQ(store.direct->release(held.claim(), soon()), ReleaseOutcome::released);
}

// A row that comes back begins with the time of the statement that makes it, which may have waited.
TEST_P(VersionRowOfLock, ARowWhoseVersionIsAheadOfTheTimeOrOnlyJustBehindItStays) {
  (void)store.isFree("makes the table");
  store.server.execute("INSERT INTO " + store.database +
                       ".lockkeeper_locks VALUES ('ahead', 9000000000000000, '', '', '2020-01-01'),"
                       "('behind', 8, '', '', '2020-01-01'),"
                       "('barely behind', (UNIX_TIMESTAMP() - 3600) * 1000000, '', '', '2020-01-01')");
  for (int pair = 0;
       pair < 200 && store.ask("SELECT 1 FROM lockkeeper_locks WHERE lock_key = 'behind'") == "1"; ++pair) {
    const Claimant who{.key = "used"};
    ASSERT_TRUE(granted(store.direct->acquire(who.request())));
    ASSERT_EQ(store.direct->release(who.claim(), soon()), ReleaseOutcome::released);
  }
  EXPECT_EQ(store.ask("SELECT 1 FROM lockkeeper_locks WHERE lock_key = 'behind'"), "");
  EXPECT_EQ(store.ask("SELECT 1 FROM lockkeeper_locks WHERE lock_key = 'barely behind'"), "1");
  const Claimant who{.key = "ahead"};
  const AcquireResult result = store.direct->acquire(who.request());
  ASSERT_TRUE(granted(result));
  EXPECT_GT(std::get<Granted>(result).fence, 9000000000000000U);
}

TEST_P(VersionRowOfLock, RowsOfTheLongestKeysAreDeletedAlsoWhereStatementsMustBeShort) {
  (void)store.isFree("makes the table");
  std::string rows;
  for (int i = 0; i < 200; ++i) {
    const std::string key = std::to_string(i) + std::string(500, 'x');
    rows += (rows.empty() ? "('" : ",('") + key + "', 1, '', '', '2020-01-01')";
  }
  store.server.execute("INSERT INTO " + store.database + ".lockkeeper_locks VALUES " + rows);
  store.server.execute("SET GLOBAL max_allowed_packet = 65536");
  const auto driver = store.open();
  const auto left = [&] {
    return store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE lock_key LIKE '%xxx'");
  };
  // Deleting stops after half a second, of which a busy machine makes little.
  for (int pair = 0; pair < 2000 && left() != "0"; ++pair) {
    const Claimant who{.key = "used"};
    EXPECT_TRUE(granted(driver->acquire(who.request())));
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  }
  store.server.execute("SET GLOBAL max_allowed_packet = DEFAULT");
  EXPECT_EQ(left(), "0");
}

TEST_P(VersionRowOfLock, AReleasedRowHoldsNoTokenAndNoOwner) {
  const Claimant who{};
  ASSERT_TRUE(granted(store.direct->acquire(who.request())));
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE owner = 'test:1'"), "1");
  ASSERT_EQ(store.direct->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE owner <> '' OR token <> ''"), "0");
}

TEST_P(VersionRowOfLock, BatchesOfManyTtlsAreRenewedInFewStatements) {
  std::vector<Claimant> claimants(230);
  std::vector<Renewal> batch;
  for (std::size_t i = 0; i < claimants.size(); ++i) {
    ASSERT_TRUE(granted(store.direct->acquire(claimants[i].request())));
    batch.push_back({.claim = claimants[i].claim(), .ttl = i % 2 == 0 ? longTtl : 2 * longTtl});
  }
  ASSERT_EQ(store.direct->release(claimants[7].claim(), soon()), ReleaseOutcome::released);
  // The next holder of a key may be in the batch with the former one.
  claimants.push_back({.key = claimants[7].key});
  ASSERT_TRUE(granted(store.direct->acquire(claimants.back().request())));
  batch.push_back({.claim = claimants.back().claim(), .ttl = 2 * longTtl});
  store.direct->renew(batch, soon());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(batch[i].outcome, i == 7 ? RenewOutcome::notOwner : RenewOutcome::renewed) << i;
    if (i == 7) continue;
    const auto held = store.direct->holder(claimants[i].key, soon());
    ASSERT_TRUE(held);
    EXPECT_GT(*held->remaining, batch[i].ttl - 1min) << i;
    EXPECT_LE(*held->remaining, batch[i].ttl) << i;
  }
}

TEST_P(VersionRowOfLock, ARowThatSomebodyElseKeepsHoldsNoCallForLong) {
  const Claimant who{};
  ASSERT_TRUE(granted(store.direct->acquire(who.request())));
  Poco::Data::Session forgotten = store.session();
  forgotten.begin();
  forgotten << "UPDATE lockkeeper_locks SET version = version + 1", Poco::Data::Keywords::now;
  // The server ends the wait, within the usual time of a call.
  LockManager manager(store.direct);
  EXPECT_TRUE(waitUntil([&] {
    try {
      (void)manager.tryLock(who.key);
    } catch (const StoreUnavailable&) {
      return true;
    } catch (const OutcomeUnknown&) {  // A machine that stands still for a second may cause this, too.
    }
    return false;
  }));
  forgotten.rollback();
  EXPECT_EQ(store.direct->release(who.claim(), soon()), ReleaseOutcome::released);
}

// One statement renews many: it must not wait for the row of one.
TEST_P(VersionRowOfLock, ARowThatSomebodyElseKeepsCostsNoOtherLockItsRenewal) {
  const std::vector<Claimant> held(10);
  std::vector<Renewal> batch;
  for (const Claimant& each : held) {
    ASSERT_TRUE(granted(store.direct->acquire(each.request())));
    batch.push_back({.claim = each.claim(), .ttl = longTtl});
  }
  const Claimant former{};
  batch.push_back({.claim = former.claim(), .ttl = longTtl});
  Poco::Data::Session forgotten = store.session();
  forgotten.begin();
  forgotten << "UPDATE lockkeeper_locks SET version = version + 1 WHERE lock_key = '" + held[3].key + "'",
      Poco::Data::Keywords::now;
  store.direct->renew(batch, in(3s));
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(batch[i].outcome, i == 3 ? RenewOutcome::unavailable : RenewOutcome::renewed) << i;
  }
  EXPECT_NE(batch[3].cause, "");
  EXPECT_EQ(batch.back().outcome, RenewOutcome::notOwner);
  EXPECT_EQ(store.status("Innodb_row_lock_current_waits"), 0);
  forgotten.rollback();
  store.direct->renew(batch, soon());
  EXPECT_EQ(batch[3].outcome, RenewOutcome::renewed);
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionRowOfLock, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

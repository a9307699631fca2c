// Who waits for a key, what marks it, and what a wait leaves of a lease. Statements that meet are made to do
// so.

#include <algorithm>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "free_port.h"
#include "lock/lock_table.h"
#include "lock/wake_ups.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "postgres_fixture.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class PostgresQueue : public PostgresTest {
 protected:
  /// Runs the statements in a transaction that stays open for so long. Returns when it has run them.
  std::jthread leaveOpen(const std::string& statements, const std::string& seconds) const {
    const std::string sleeps = "SELECT pg_sleep(" + seconds + ")";
    std::jthread thread([server = &store.server, text = "BEGIN; " + statements + "; " + sleeps + "; COMMIT"] {
      server->execute(text);
    });
    EXPECT_TRUE(waitUntil([&] {
      return store.server.ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1";
    }));
    return thread;
  }
  static std::string rowOf(const std::string& key) { return "lock_key = '" + key + "'::bytea"; }
  std::string ask(const std::string& what, const std::string& key) const {
    return store.server.ask("SELECT " + what + " FROM lockkeeper_locks WHERE " + rowOf(key));
  }

  std::string waiting(const std::string& key) const {
    return store.server.ask("SELECT count(*) FROM lockkeeper_locks_waiters WHERE " + rowOf(key));
  }
  bool oneWaits(const std::string& key, const char* count = "1") const {
    return waitUntil([&] { return waiting(key) == count; });
  }

  const postgres::LockTexts texts{"public", "lockkeeper_locks"};
  postgres::Sessions sessions{
      postgres::ServerOptions::fromUri(StoreUri::parse(store.server.uri(PostgresStore::scheme)), {}),
      {.script = "", .file = "version.sql"},
      Environment{}};
  postgres::LockTable table{sessions, texts};
};

TEST_F(PostgresQueue, AClaimThatMeetsANewWaiterLeavesItsMark) {
  const Claimant who;
  const std::int64_t place = table.enterQueue(who.claim(), false, 3s, soon(), false);
  const auto marking = leaveOpen(
      "UPDATE lockkeeper_locks SET waited_until = clock_timestamp() + interval '9 seconds' WHERE " +
          rowOf(who.key) +
          "; INSERT INTO lockkeeper_locks_waiters SELECT lock_key, decode(md5('next'), 'hex'), "
          "nextval('lockkeeper_locks_places'), 'next', NULL, NULL, clock_timestamp(), clock_timestamp() "
          "+ interval '9 seconds' FROM lockkeeper_locks WHERE " +
          rowOf(who.key),
      "0.7");
  ASSERT_TRUE(granted(table.claim(who.request(), place)));
  EXPECT_EQ(ask("waited_until > clock_timestamp()", who.key), "t") << "newcomers would overtake the next one";
}

TEST_F(PostgresQueue, ThoseWhoStayMarkTheRowOnce) {
  const Claimant first;
  const Claimant second{.key = first.key};
  table.enterQueue(first.claim(), false, 3s, soon(), false);
  const std::int64_t place = table.enterQueue(second.claim(), false, 3s, soon(), false);
  const std::string version = ask("xmin", first.key);
  EXPECT_EQ(table.enterQueue(second.claim(), false, 3s, soon(), true), place);
  EXPECT_EQ(ask("xmin", first.key), version) << "it was marked just before";
  store.server.execute("UPDATE lockkeeper_locks SET waited_until = clock_timestamp() + interval '1 second'");
  table.enterQueue(second.claim(), false, 3s, soon(), true);
  EXPECT_EQ(ask("waited_until > clock_timestamp() + interval '2 seconds'", first.key), "t");
}

TEST_F(PostgresQueue, UpgradesGoBeforeOthersInTheirOrder) {
  const Claimant first;
  const std::int64_t waits = table.enterQueue(Claimant{.key = first.key}.claim(), false, 3s, soon(), false);
  const std::int64_t upgrades = table.enterQueue(first.claim(), true, 3s, soon(), false);
  const std::int64_t later = table.enterQueue(Claimant{.key = first.key}.claim(), true, 3s, soon(), false);
  EXPECT_LT(postgres::aheadOfAll, upgrades);
  EXPECT_LT(upgrades, later);
  EXPECT_LT(later, waits);
}

TEST_F(PostgresQueue, TheLeaseOfOneThatWaitedIsYoung) {
  const auto driver = store.open();
  const Claimant holds;
  const Claimant waits{.key = holds.key};
  ASSERT_TRUE(granted(driver->acquire(holds.request())));
  AcquireRequest request = waits.request();
  request.ttl = 2s;
  AcquireResult result = Busy{};
  Instant returned;
  std::jthread waiter([&] {
    result = capability<Waitable>(*driver)->acquireWaiting(request, 20s, {});
    returned = now();
  });
  // It has just said that it waits, and does so again in a second.
  const std::string place = "SELECT place FROM lockkeeper_locks_waiters WHERE " + rowOf(holds.key);
  ASSERT_TRUE(waitUntil([&] {
    return !store.server.ask(place + " AND expires_at > clock_timestamp() + interval '2.9 seconds'").empty();
  }));
  const auto keeping = leaveOpen(
      "UPDATE lockkeeper_locks SET token = '', expires_at = clock_timestamp() WHERE " + rowOf(holds.key),
      "0.7");
  store.server.execute("SELECT pg_notify('" + texts.channel + "', (" + place + ")::text)");
  waiter.join();
  ASSERT_TRUE(granted(result));
  EXPECT_LE(returned - std::get<Granted>(result).leasedFrom, request.ttl / 4);
}

// Its place would keep those behind it from the key for three seconds, and itself, if it came back as
// another.
TEST_F(PostgresQueue, AClaimThatFindsNoServerForAMomentKeepsItsPlace) {
  const Claimant holds;
  ASSERT_TRUE(granted(store.direct->acquire(holds.request())));
  LockManager broken(store.openProxied());
  LockManager well(store.open());
  std::mutex mutex;
  std::string turns;
  const auto wait = [&](LockManager& locks, const char* name) {
    return std::jthread([&, name] {
      const Lock lock = locks.lock(holds.key, {.ttl = 30s, .waitFor = 30s});
      const std::lock_guard guard(mutex);
      turns += name;
    });
  };
  std::vector<std::jthread> threads;
  threads.push_back(wait(broken, "first "));
  ASSERT_TRUE(oneWaits(holds.key));
  threads.push_back(wait(well, "second "));
  ASSERT_TRUE(oneWaits(holds.key, "2"));
  const std::size_t before = store.proxy.connections();
  store.proxy.leadTo(freePort());
  store.proxy.endConnections(Ending::rst);
  ASSERT_TRUE(waitUntil([&] { return store.proxy.connections() >= before + 2; })) << "it has looked";
  store.proxy.leadTo(store.server.port());
  EXPECT_EQ(store.direct->release(holds.claim(), soon()), ReleaseOutcome::released);
  threads.clear();
  EXPECT_EQ(turns, "first second ");
}

TEST_F(PostgresQueue, WhoMayHaveLeftAPlaceBehindSaysSo) {
  const Claimant holds;
  ASSERT_TRUE(granted(store.direct->acquire(holds.request())));
  const auto proxied = store.openProxied();
  const Claimant waits{.key = holds.key};
  std::stop_source stop;
  {
    const std::jthread ending([&] {
      EXPECT_TRUE(oneWaits(holds.key));
      store.proxy.set({.kind = ProxyFault::Kind::hold, .text = "_waiters\" WHERE lock_key"});
      stop.request_stop();
      if (waitUntil([this] { return store.proxy.fired() > 0; })) store.proxy.endHeldConnections(Ending::rst);
    });
    EXPECT_THROW(
        (void)capability<Waitable>(*proxied)->acquireWaiting(waits.request(in(30s)), 30s, stop.get_token()),
        WithdrawalUnknown);
  }
  EXPECT_EQ(waiting(holds.key), "1");
  EXPECT_EQ(proxied->release(waits.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_EQ(waiting(holds.key), "0");
}

TEST_F(PostgresQueue, WhatIsToldWhileNobodyListensIsAskedFor) {
  postgres::WakeUps wakeUps{sessions, texts.channel};
  wakeUps.listen(soon());
  wakeUps.add(1);
  store.server.endSessions();
  EXPECT_FALSE(wakeUps.await(1, soon(), {}));
  wakeUps.listen(soon());  // For another one that waits.
  const Instant end = soon();
  EXPECT_TRUE(wakeUps.await(1, end, {}));
  EXPECT_LT(now(), end) << "it waits to be told again";
  wakeUps.unlisten(1, false);
  wakeUps.unlisten({}, false);
}

// The claim that follows the waiter's place in the queue, the release, the claim upon the notification, and,
// once a second, a mark.
TEST_F(PostgresQueue, AKeyIsHandedOverInAtMostFourRoundTrips) {
  const auto driver = store.openProxied();
  std::vector<std::size_t> roundTrips(7);
  for (std::size_t& each : roundTrips) {
    const Claimant holds;
    ASSERT_TRUE(granted(driver->acquire(holds.request())));
    const Claimant waits{.key = holds.key};
    std::jthread waiter([&] {
      EXPECT_TRUE(granted(capability<Waitable>(*driver)->acquireWaiting(waits.request(), 20s, {})));
    });
    ASSERT_TRUE(oneWaits(holds.key));
    store.proxy.set({});
    EXPECT_EQ(driver->release(holds.claim(), soon()), ReleaseOutcome::released);
    waiter.join();
    each = store.proxy.requests();
  }
  std::ranges::sort(roundTrips);
  EXPECT_LE(roundTrips[roundTrips.size() / 2], 4U);
  RecordProperty("median", static_cast<int>(roundTrips[roundTrips.size() / 2]));
}

TEST_F(PostgresQueue, ALeaseBeginsWhenThereIsASession) {
  const auto driver = store.open("connections=1");
  const Claimant slow;
  ASSERT_TRUE(granted(driver->acquire(slow.request())));
  const auto keeping =
      leaveOpen("SELECT FROM lockkeeper_locks WHERE " + rowOf(slow.key) + " FOR UPDATE", "0.8");
  std::jthread waits([&] { EXPECT_TRUE(granted(driver->acquire(slow.request(soon(), true)))); });
  ASSERT_TRUE(
      waitUntil([&] { return store.server.ask("SELECT count(*) FROM pg_locks WHERE NOT granted") == "1"; }));
  const AcquireResult result = driver->acquire(Claimant{}.request());
  ASSERT_TRUE(granted(result));
  EXPECT_LT(now() - std::get<Granted>(result).leasedFrom, 300ms);
}

TEST_F(PostgresQueue, ARenewalForAtLeastSoLongShortensNothing) {
  for (const std::optional<Share> share : {std::optional<Share>(), std::optional(Share{1, 2})}) {
    Claimant who;
    who.share = share;
    ASSERT_TRUE(granted(store.direct->acquire(who.request())));
    std::vector<Renewal> renewals{{.claim = who.claim(), .ttl = 1s, .atLeast = true}};
    store.direct->renew(renewals, soon());
    EXPECT_EQ(renewals.front().outcome, RenewOutcome::renewed);
    EXPECT_GT(store.direct->holder(who.key, soon())->remaining.value(), 1min);
    renewals.front().atLeast = false;
    store.direct->renew(renewals, soon());
    EXPECT_LE(store.direct->holder(who.key, soon())->remaining.value_or(0ms), 1s);
  }
}

}  // namespace
}  // namespace lockkeeper::test

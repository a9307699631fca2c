// Who waits for a key, what marks it, and what a wait leaves of a lease. Statements that meet are made to do
// so.

#include <string>
#include <thread>
#include <vector>

#include "lock/lock_table.h"
#include "lockkeeper/driver/queue.h"
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

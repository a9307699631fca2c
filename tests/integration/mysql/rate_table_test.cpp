// The rows of limits: how long they stay, and what those see who wait for them.

#include "lockkeeper/mysql/rate_table.h"

#include <Poco/Data/Session.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fault_proxy.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/rate_policy.h"
#include "succeeds_in_the_end.h"
#include "version/version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Its numbers up to 99 are 99.
class Largest final : public Random {
 public:
  void fill(std::span<std::byte> out) override {
    std::ranges::fill(out, std::byte{0});
    out.front() = std::byte{99};
  }
};

class RateTableTest : public VersionTest {
 protected:
  void take(const std::string& key) {
    RateCharge charge{.key = key, .law = &policy.law()};
    rates.take({&charge, 1}, soon());
  }

  bool hasRow(const std::string& key) const {
    return store.ask("SELECT 1 FROM lockkeeper_rates WHERE id='" + key + "'") == "1";
  }
  void makeOlder(const std::string& key, std::chrono::microseconds age) const {
    Poco::Data::Session session = store.session();
    execute(session, "UPDATE lockkeeper_rates SET state=state-" + std::to_string(age.count()) +
                         "*10000000000.0 WHERE family=0 AND id='" + key + "'");
  }
  std::int64_t deadlocks() const {
    return std::stoll(
        store.ask("SELECT count FROM information_schema.innodb_metrics WHERE name='lock_deadlocks'"));
  }
  static void execute(Poco::Data::Session& session, const std::string& statement) {
    session << statement, Poco::Data::Keywords::now;
  }

  const RatePolicy policy{"p", {.rate = {1'000'000, 1s}, .burst = 1000}};
  const StoreUri uri =
      StoreUri::parse("mysql+version" + store.server.uri(store.database).substr(std::string("mysql").size()) +
                      "?createTable=true");
  mysql::RateTable rates{uri};
};

// Not sooner: who has read the server's clock and then waited for the row would start from an earlier time
// than the others have used.
TEST_P(RateTableTest, ARowIsClearedAwayAnHourAfterItWasFull) {
  take("longFull");
  take("justFull");
  makeOlder("longFull", 61min);
  makeOlder("justFull", 59min);
  for (int charges = 0; charges < 1000; ++charges) take("busy");
  EXPECT_FALSE(hasRow("longFull"));
  EXPECT_TRUE(hasRow("justFull"));
}

// Many keys that are used once: as fast as rows come, those that are as good as none go.
TEST_P(RateTableTest, TheTableDoesNotGrowForEverWithNewKeys) {
  constexpr int keys = 2000;
  take("makes the table");
  Poco::Data::Session session = store.session();
  std::string rows;
  for (int i = 0; i < keys; ++i) rows += (i == 0 ? "(0,'old:" : ",(0,'old:") + std::to_string(i) + "')";
  execute(session, "INSERT INTO lockkeeper_rates(family,id) VALUES" + rows);
  for (int i = 0; i < keys; ++i) take("new:" + std::to_string(i));
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_rates WHERE id LIKE 'old:%'"), "0");
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_rates WHERE id LIKE 'new:%'"), std::to_string(keys));
}

TEST_P(RateTableTest, RowsOfTheLongestKeysAreClearedAlsoWhereStatementsMustBeShort) {
  take("makes the table");
  std::string rows;
  for (int i = 0; i < 200; ++i)
    rows += (i == 0 ? "(0,'old:" : ",(0,'old:") + std::to_string(i) + std::string(600, 'x') + "')";
  Poco::Data::Session session = store.session();
  execute(session, "INSERT INTO lockkeeper_rates(family,id) VALUES" + rows);
  execute(session, "SET GLOBAL max_allowed_packet = 65536");
  mysql::RateTable narrow(uri);
  const auto areGone = [&] {
    return store.ask("SELECT COUNT(*) FROM lockkeeper_rates WHERE id LIKE 'old:%'") == "0";
  };
  // Clearing stops after half a second, of which a busy machine makes little.
  for (int i = 0; i < 5000 && (i % 100 != 0 || !areGone()); ++i) {
    RateCharge charge{.key = "busy", .law = &policy.law()};
    narrow.take({&charge, 1}, soon());
  }
  execute(session, "SET GLOBAL max_allowed_packet = DEFAULT");
  EXPECT_TRUE(areGone());
}

TEST_P(RateTableTest, NorWithSeveralNewKeysInACallOrOneInEachProcess) {
  constexpr int calls = 300;
  take("makes the table");
  Poco::Data::Session session = store.session();
  std::string rows;
  for (int i = 0; i < 4 * calls; ++i) rows += (i == 0 ? "(0,'old:" : ",(0,'old:") + std::to_string(i) + "')";
  execute(session, "INSERT INTO lockkeeper_rates(family,id) VALUES" + rows);
  for (int i = 0; i < calls; ++i) {
    std::array<std::string, 4> keys;
    std::array<RateCharge, 4> charges;
    for (std::size_t each = 0; each < keys.size(); ++each) {
      keys[each] = "new:" + std::to_string(i) + ":" + std::to_string(each);
      charges[each] = {.key = keys[each], .law = &policy.law()};
    }
    rates.take(charges, soon());
  }
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_rates WHERE id LIKE 'old:%'"), "0");

  execute(session, "INSERT INTO lockkeeper_rates(family,id) VALUES(0,'aged')");
  Environment environment;
  environment.random = std::make_shared<Largest>();
  mysql::RateTable process(uri, environment);
  RateCharge charge{.key = "one", .law = &policy.law()};
  process.take({&charge, 1}, soon());
  EXPECT_FALSE(hasRow("aged"));
}

TEST_P(RateTableTest, ASweepCostsItsCallerTwoRoundTrips) {
  take("makes the table");
  Poco::Data::Session session = store.session();
  std::string rows;
  for (int i = 0; i < 150; ++i) rows += (i == 0 ? "(0,'old:" : ",(0,'old:") + std::to_string(i) + "')";
  execute(session, "INSERT INTO lockkeeper_rates(family,id) VALUES" + rows);
  const std::int64_t before = store.status("Com_commit");
  for (int i = 0; i < 100; ++i) take("busy");
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_rates WHERE id LIKE 'old:%'"), "0");
  // A server that is slow is swept in more than one go.
  EXPECT_LE(store.status("Com_commit") - before, 100 + 10) << "one commit a charge, one a round trip";
}

TEST_P(RateTableTest, ASweepWaitsForNoRowThatOthersKeep) {
  take("makes the table");
  Poco::Data::Session session = store.session();
  execute(session, "INSERT INTO lockkeeper_rates(family,id) VALUES(0,'old:1'),(0,'old:2'),(0,'old:3')");
  session.begin();
  execute(session, "SELECT 1 FROM lockkeeper_rates WHERE family=0 AND id='old:2' FOR UPDATE");
  const std::int64_t waits = store.status("Innodb_row_lock_waits");
  // A sweep that finds the server slow leaves the rest to the next one.
  const auto afterSweeps = [&](auto condition) {
    return waitUntil([&] {
      for (int i = 0; i < 100; ++i) take("busy");
      return condition();
    });
  };
  EXPECT_TRUE(afterSweeps([&] {
    return store.ask("SELECT GROUP_CONCAT(id) FROM lockkeeper_rates WHERE id LIKE 'old:%'") == "old:2";
  }));
  EXPECT_EQ(store.status("Innodb_row_lock_waits"), waits);
  session.rollback();
  // It comes by again when it has been at the end.
  EXPECT_TRUE(afterSweeps([&] { return !hasRow("old:2"); }));
}

// The server undoes the transaction that has done less: not that of the other session here.
TEST_P(RateTableTest, ADeadlockIsNotSeen) {
  take("a");
  take("b");
  Poco::Data::Session other = store.session();
  other.begin();
  execute(other, "UPDATE lockkeeper_rates SET granted=0 WHERE family=0 AND id='b'");
  std::string rows;
  for (int row = 0; row < 100; ++row) rows += (row == 0 ? "(9,'" : ",(9,'") + std::to_string(row) + "')";
  execute(other, "INSERT INTO lockkeeper_rates(family,id) VALUES" + rows);

  std::jthread taker([&] {
    std::array charges{RateCharge{.key = "a", .law = &policy.law()},
                       RateCharge{.key = "b", .law = &policy.law()}};
    EXPECT_NO_THROW(rates.take(charges, soon()));
    EXPECT_EQ(charges[0].outcome.granted, 1);
    EXPECT_EQ(charges[1].outcome.granted, 1);
  });
  // Not information_schema.innodb_trx: while it is read often it shows what was found by the first look.
  EXPECT_TRUE(waitUntil([&] { return store.status("Innodb_row_lock_current_waits") == 1; }));
  const std::int64_t before = deadlocks();
  execute(other, "UPDATE lockkeeper_rates SET granted=0 WHERE family=0 AND id='a'");
  EXPECT_EQ(deadlocks(), before + 1);
  other.commit();
  taker.join();
}

/// Somebody else's transaction keeps the rows of the keys "hot…" while it lives.
class KeptRow {
 public:
  explicit KeptRow(const VersionStore& store) : session_(store.session()) {
    session_.begin();
    session_ << "UPDATE lockkeeper_rates SET granted=granted+1 WHERE family=0 AND id LIKE 'hot%'",
        Poco::Data::Keywords::now;
  }
  ~KeptRow() { session_.rollback(); }

 private:
  Poco::Data::Session session_;
};

TEST_P(RateTableTest, ACallerWhoLeavesLeavesTheLineForTheRow) {
  take("hot");
  const KeptRow kept(store);
  RateCharge charge{.key = "hot", .law = &policy.law()};
  EXPECT_THROW(rates.take({&charge, 1}, in(2s)), LockTimeout) << "sooner than the server gives up";
  EXPECT_EQ(store.status("Innodb_row_lock_current_waits"), 0);
  std::array two{charge, RateCharge{.key = "cold", .law = &policy.law()}};
  EXPECT_THROW(rates.take(two, in(2s)), LockTimeout);
  EXPECT_THROW(rates.refund({.key = "hot", .law = &policy.law()}, in(2s)), LockTimeout);
  EXPECT_THROW(rates.reset("hot", RateKind::tokenBucket, in(2s)), LockTimeout);
  EXPECT_EQ(store.status("Innodb_row_lock_current_waits"), 0);
}

// One that is paused, or whose host has gone: the server hears nothing more, not even a goodbye.
TEST_P(RateTableTest, AClientThatFallsSilentAmongItsRoundTripsKeepsNoRow) {
  FaultProxy proxy(store.server.port());
  const std::string proxied = DatabaseServer::uri(store.database, proxy.port());
  Environment paused;
  paused.clock = std::make_shared<StoppedClock>();
  mysql::RateTable silent(StoreUri::parse("mysql+version" + proxied.substr(std::string("mysql").size())),
                          paused);
  const RatePolicy log("l", {.kind = RateKind::slidingWindow, .rate = {100, 1h}});
  const auto charge = [&](RateDriver& driver, Instant deadline) {
    RateCharge asked{.key = "k", .law = &log.law()};
    driver.take({&asked, 1}, deadline);
    return asked.outcome.granted == 1;
  };
  const auto isFree = [&] {
    try {
      return charge(rates, in(1s));
    } catch (const Error&) {  // As a rule LockTimeout; the server may be slow as well.
      return false;
    }
  };
  ASSERT_TRUE(charge(rates, soon()));
  const Instant deadline = paused.clock->now() + 2s;
  for (const bool refunds : {false, true}) {
    ASSERT_TRUE(waitUntil([&] { return charge(silent, deadline); }));
    proxy.set({.kind = ProxyFault::Kind::step, .requests = 1});
    auto fallsSilent = std::async(std::launch::async, [&] {
      EXPECT_THROW(
          refunds ? silent.refund({.key = "k", .law = &log.law()}, deadline) : charge(silent, deadline),
          Error);
    });
    EXPECT_TRUE(waitUntil([&] { return proxy.fired() == 1; }));
    EXPECT_TRUE(waitUntil(isFree)) << refunds;
    proxy.passThrough();
    fallsSilent.get();
  }
}

TEST_P(RateTableTest, ASessionThatIsFreeHasTheServersOwnIdleTimeout) {
  const RatePolicy log("l", {.kind = RateKind::slidingWindow, .rate = {2, 1h}});
  RateCharge charge{.key = "k", .law = &log.law()};
  take("makes the table");
  for (int calls = 0; calls < 3; ++calls) succeedsInTheEnd([&] { rates.take({&charge, 1}, in(1s)); });
  succeedsInTheEnd([&] { rates.refund({.key = "k", .law = &log.law()}, in(1s)); });
  EXPECT_TRUE(waitUntil(
      [&] {
        return store.ask(
                   "SELECT COUNT(*)>0 FROM information_schema.processlist WHERE command='Sleep' AND db='" +
                   store.database + "' AND time>=3") == "1";
      },
      6s))
      << "it has outlived the two of the transaction";
}

TEST_P(RateTableTest, ANumberThatNoLimitWritesIsRefusedAndGoneAfterAReset) {
  take("makes the table");
  Poco::Data::Session session = store.session();
  const RatePolicy log("l", {.kind = RateKind::slidingWindow, .rate = {2, 1h}});
  const RatePolicy window("w", {.kind = RateKind::fixedWindow, .rate = {2, 1h}});
  struct Case {
    const RatePolicy& limit;
    const char* family;
    const char* state;
    const char* log;
  };
  // The times are 20000000000000000 µs, 2^53 µs, and in logs the last and the first that 8 bytes can hold.
  for (const Case& each :
       {Case{policy, "0", "200000000000000000000000000", "NULL"},
        Case{policy, "0", "90071992547409920000000000", "NULL"},
        Case{log, "1", "200000000000000000000000000", "NULL"}, Case{log, "1", "0", "x'7fffffffffffffff'"},
        Case{log, "1", "0", "x'8000000000000000'"},
        Case{window, "2", "200000000000000000000000000", "NULL"}}) {
    const RateLaw& law = each.limit.law();
    const std::string what = std::string(toString(law.kind)) + ": " + each.state + ", " + each.log;
    execute(session, std::string("REPLACE INTO lockkeeper_rates(family,id,state,log) VALUES(") + each.family +
                         ",'k'," + each.state + "," + each.log + ")");
    std::array two{RateCharge{.key = "k", .law = &law}, RateCharge{.key = "other", .law = &law}};
    try {
      rates.take({two.data(), 1}, soon());
      ADD_FAILURE() << what;
    } catch (const ProtocolError& error) {
      EXPECT_NE(std::string(error.what()).find("holds something that is no limit"), std::string::npos)
          << error.what();
    }
    EXPECT_THROW(rates.take(two, soon()), ProtocolError) << what;
    EXPECT_THROW(rates.peek(two, soon()), ProtocolError) << what;
    EXPECT_THROW(rates.refund({.key = "k", .law = &law}, soon()), ProtocolError) << what;
    rates.reset("k", law.kind, soon());
    EXPECT_NO_THROW(rates.take(two, soon())) << what;
    EXPECT_EQ(two[0].outcome.granted, 1) << what;
    EXPECT_EQ(two[1].outcome.remaining, each.limit.limit() - 1) << what << ": the other was not charged";
    rates.reset("other", law.kind, soon());
  }
  // What a limit can have written is believed, though its time is far.
  execute(session, "REPLACE INTO lockkeeper_rates(family,id,state) VALUES(0,'k',90071992547409910000000000)");
  RateCharge charge{.key = "k", .law = &policy.law()};
  rates.take({&charge, 1}, soon());
  EXPECT_GT(charge.outcome.retryAfter, 24h * 365 * 100);
}

// The server gives up first.
TEST_P(RateTableTest, ARowThatStaysLockedIsNoFaultOfTheStore) {
  take("hot");
  const KeptRow kept(store);
  RateCharge charge{.key = "hot", .law = &policy.law()};
  EXPECT_THROW(rates.take({&charge, 1}, soon()), LockTimeout);
}

TEST_P(RateTableTest, AHotRowIsAnOutageOfItsKeyAlone) {
  take("makes the table");
  const auto driver = std::shared_ptr<RateDriver>(std::shared_ptr<void>(), &rates);
  RateLimiter limiter(driver, {.operationTimeout = 2s});
  EXPECT_FALSE(limiter.take("hot", policy).outage);
  const std::string row = store.ask("SELECT id FROM lockkeeper_rates WHERE id LIKE '%hot'");
  Poco::Data::Session other = store.session();
  other.begin();
  execute(other, "UPDATE lockkeeper_rates SET granted=0 WHERE family=0 AND id='" + row + "'");
  EXPECT_EQ(limiter.take("hot", policy).outage, ErrorCode::lockTimeout);
  EXPECT_FALSE(limiter.take("cold", policy).outage) << "the store is asked";
  other.rollback();
  EXPECT_FALSE(limiter.take("hot", policy).outage);
}

// Each asks for two limits together, so that no line of the limiter gathers them.
TEST_P(RateTableTest, CallersWhoWaitForOneRowLeaveSessionsToTheOthers) {
  take("hot");
  const KeptRow kept(store);
  std::atomic<int> inside{0};
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 16; ++i) {
      callers.emplace_back([&] {
        std::array charges{RateCharge{.key = "hot", .law = &policy.law()},
                           RateCharge{.key = "warm", .law = &policy.law()}};
        ++inside;
        EXPECT_THROW(rates.take(charges, in(1800ms)), LockTimeout);
      });
    }
    EXPECT_TRUE(
        waitUntil([&] { return inside == 16 && store.status("Innodb_row_lock_current_waits") == 2; }));
    EXPECT_NO_THROW(take("cold"));
  }
  EXPECT_LE(store.server.sessions(), 2 + 1 + 1);
}

TEST_P(RateTableTest, CallersWithoutASessionKnowThatTheServerIsWell) {
  const std::array<std::string, 4> hot{"hot1", "hot2", "hot3", "hot4"};
  for (const std::string& key : hot) take(key);
  const KeptRow kept(store);
  const auto findsNoSession = [&](auto&& call) {
    std::vector<std::jthread> callers;
    for (std::size_t i = 0; i < 8; ++i) {
      callers.emplace_back([&, key = hot[i / 2]] {
        RateCharge charge{.key = key, .law = &policy.law()};
        EXPECT_THROW(rates.take({&charge, 1}, in(10s)), LockTimeout);
      });
    }
    // The server lets them wait for a second.
    const auto allWait = [&] { return store.status("Innodb_row_lock_current_waits") == 8; };
    if (!waitUntil(allWait, 1s)) return false;
    RateCharge cold{.key = "cold", .law = &policy.law()};
    try {
      call(std::span(&cold, 1));
      return false;
    } catch (const LockTimeout&) {
      return true;
    } catch (const Error&) {  // The log-in of the session that asks whether the server is well took too long.
      return false;
    }
  };
  EXPECT_TRUE(waitUntil(
      [&] { return findsNoSession([&](std::span<RateCharge> cold) { rates.take(cold, in(500ms)); }); },
      1min));
  EXPECT_TRUE(waitUntil(
      [&] { return findsNoSession([&](std::span<RateCharge> cold) { rates.peek(cold, in(500ms)); }); },
      1min));
}

// Whoever waits for them has not asked the server, either.
TEST_P(RateTableTest, AServerThatHangsIsNoFaultOfARow) {
  take("hot");
  store.server.pause();
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 6; ++i) {
      callers.emplace_back([&] {
        std::array charges{RateCharge{.key = "hot", .law = &policy.law()},
                           RateCharge{.key = "warm", .law = &policy.law()}};
        try {
          rates.take(charges, in(500ms));
          ADD_FAILURE() << "nobody has answered";
        } catch (const Error& error) {
          EXPECT_NE(error.code(), ErrorCode::lockTimeout) << error.what();
        }
      });
    }
  }
  store.server.resume();
}

INSTANTIATE_TEST_SUITE_P(Brands, RateTableTest, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

// Limits as rows: what the contract suite does not see.

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "forked_child.h"
#include "lockkeeper/error.h"
#include "rate_fixture.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr RateKind allKinds[] = {RateKind::tokenBucket, RateKind::leakyQueue, RateKind::slidingWindow,
                                 RateKind::fixedWindow};

TEST_F(PostgresRates, EachCallIsOneRoundTrip) {
  Environment environment;
  environment.random = std::make_shared<Zeros>();
  const auto proxied =
      limitsOf(openPostgres(PostgresServer::uri(PostgresStore::scheme, store.proxy.port()), "", environment));
  for (const bool isFirst : {true, false}) {
    for (const RateKind kind : allKinds) {
      const RatePolicy policy = policyOf(kind, 2);
      const std::string which = Claimant{}.key, other = Claimant{}.key;
      std::array two{RateCharge{.key = which, .law = &policy.law()},
                     RateCharge{.key = other, .law = &policy.law()}};
      const auto roundTrips = [&](auto call) {
        store.proxy.passThrough();
        call();
        return store.proxy.requests();
      };
      if (isFirst) take(*proxied, which, policy);
      EXPECT_EQ(roundTrips([&] { take(*proxied, which, policy); }), 1U);
      EXPECT_EQ(roundTrips([&] { proxied->take(two, soon()); }), 1U);
      EXPECT_EQ(roundTrips([&] { proxied->peek(two, soon()); }), 1U);
      EXPECT_EQ(
          roundTrips([&] { EXPECT_TRUE(proxied->refund({.key = which, .law = &policy.law()}, soon())); }),
          1U);
      EXPECT_EQ(roundTrips([&] { proxied->reset(which, kind, soon()); }), 1U);
    }
  }
}

TEST_F(PostgresRates, ACrowdGetsExactlyTheLimitOfEachKind) {
  constexpr int callers = 8;
  for (const char* isolation : {"read committed", "serializable"}) {
    store.server.execute(std::string("ALTER ROLE keeper SET default_transaction_isolation = '") + isolation +
                         "'");
    for (const RateKind kind : allKinds) {
      SCOPED_TRACE(std::string(toString(kind)) + ", " + isolation);
      const RatePolicy policy = policyOf(kind, 100);
      const std::string which = Claimant{}.key;
      std::atomic<std::int64_t> granted = 0;
      std::vector<std::jthread> threads;
      for (int caller = 0; caller < callers; ++caller) {
        threads.emplace_back([&] {
          const auto own = limitsOf(store.open());
          RateCharge charge{.key = which, .law = &policy.law(), .longestWait = 366 * 24h};
          for (int call = 0; call < 20; ++call) {
            own->take({&charge, 1}, in(30s));
            granted += charge.outcome.granted;
          }
        });
      }
      threads.clear();
      EXPECT_EQ(granted, 100);
      EXPECT_EQ(remaining(which, policy), 0);
    }
    store.server.execute("ALTER ROLE keeper RESET ALL");
  }
}

TEST_F(PostgresRates, ACrowdIsChargedForSeveralTogetherOrForNone) {
  struct Limit {
    std::string key = Claimant{}.key;
    RatePolicy policy;
    std::atomic<std::int64_t> used = 0;
  };
  std::array<Limit, 3> all{Limit{.policy = policyOf(RateKind::tokenBucket, 60)},
                           Limit{.policy = policyOf(RateKind::slidingWindow, 50)},
                           Limit{.policy = policyOf(RateKind::fixedWindow, 70)}};
  std::vector<std::jthread> threads;
  for (std::size_t caller = 0; caller < 6; ++caller) {
    threads.emplace_back([&, caller] {
      const auto own = limitsOf(store.open());
      for (std::size_t call = 0; call < 30; ++call) {
        Limit& one = all[(caller + call) % 3];
        Limit& other = all[(caller + call + 1 + caller % 2) % 3];
        std::array two{RateCharge{.key = one.key, .law = &one.policy.law()},
                       RateCharge{.key = other.key, .law = &other.policy.law()}};
        own->take(two, in(30s));
        if (two[0].outcome.granted == 0 || two[1].outcome.granted == 0) continue;
        ++one.used;
        ++other.used;
      }
    });
  }
  threads.clear();
  int full = 0;
  for (const Limit& each : all) {
    EXPECT_EQ(remaining(each.key, each.policy), each.policy.limit() - each.used);
    full += each.used == each.policy.limit() ? 1 : 0;
  }
  EXPECT_GE(full, 2) << "while two have room, there are calls that fit";
}

TEST_F(PostgresRates, AChargeWhoseReplyIsCutIsUnknownAndChargedOnceAtMost) {
  const auto proxied = limitsOf(store.openProxied());
  take(*proxied, key, bucket);
  store.proxy.cutReplies(1, Ending::rst);
  EXPECT_THROW(take(*proxied, key, bucket), OutcomeUnknown);
  store.proxy.passThrough();
  EXPECT_GE(remaining(key, bucket), 98);
  EXPECT_LE(remaining(key, bucket), 99);
}

TEST_F(PostgresRates, ANumberThatNoLimitWritesIsRefusedAndGoneAfterAReset) {
  const RatePolicy log = policyOf(RateKind::slidingWindow, 2), window = policyOf(RateKind::fixedWindow, 2);
  struct Case {
    const RatePolicy& limit;
    const char* family;
    const char* values;
  };
  for (const Case& each :
       {Case{bucket, "0", "9007199254740992, 0, NULL"}, Case{bucket, "0", "-1, 0, NULL"},
        Case{bucket, "0", "0, 9007199254740992, NULL"}, Case{bucket, "0", "0, -9223372036854775808, NULL"},
        Case{log, "1", "9223372036854775807, 0, NULL"}, Case{log, "1", "0, 0, '{9223372036854775807}'"},
        Case{log, "1", "0, 0, '{-1}'"}, Case{window, "2", "9223372036854775807, 0, NULL"}}) {
    SCOPED_TRACE(each.values);
    const RateLaw& law = each.limit.law();
    const std::string which = Claimant{}.key, other = Claimant{}.key;
    store.server.execute(
        std::string("INSERT INTO lockkeeper_rates (family, rate_key, first, second, admitted) VALUES (") +
        each.family + ", '" + which + "', " + each.values + ")");
    std::array two{RateCharge{.key = which, .law = &law}, RateCharge{.key = other, .law = &law}};
    for (int attempt = 0; attempt < 2; ++attempt) {
      EXPECT_THROW(limits->take({two.data(), 1}, soon()), ProtocolError);
      EXPECT_THROW(limits->take(two, soon()), ProtocolError);
      EXPECT_THROW(limits->peek(two, soon()), ProtocolError);
      EXPECT_THROW(limits->refund({.key = which, .law = &law}, soon()), ProtocolError);
    }
    limits->reset(which, law.kind, soon());
    limits->take(two, soon());
    EXPECT_EQ(two[0].outcome.granted, 1);
    EXPECT_EQ(two[1].outcome.remaining, each.limit.limit() - 1) << "the other was not charged";
  }
  // What a limit can have written is believed, though its time is far.
  store.server.execute("INSERT INTO lockkeeper_rates (family, rate_key, first) VALUES (0, '" + key +
                       "', 9007199254740991)");
  RateCharge charge{.key = key, .law = &bucket.law()};
  limits->take({&charge, 1}, soon());
  EXPECT_GT(charge.outcome.retryAfter, 24h * 365 * 100);
}

// Not sooner: who has read the clock and then waited for the row would start from an earlier time than the
// others have used.
TEST_F(PostgresRates, ARowIsDeletedAnHourAfterItWasUsedLast) {
  const std::string longFull = Claimant{}.key, kept = Claimant{}.key, justFull = Claimant{}.key;
  for (const std::string& each : {longFull, kept, justFull}) {
    take(*limits, each, bucket);
    const std::int64_t age = each == justFull ? 3'540'000'000 : 3'660'000'000;  // 59 and 61 minutes
    store.server.execute(
        "UPDATE lockkeeper_rates SET unused_from = extract(epoch FROM clock_timestamp()) * 1000000 - " +
        std::to_string(age) + " WHERE rate_key = '" + each + "'");
  }
  const auto areGone = [&](const std::string& which) {
    return waitUntil([&] {
      for (int charges = 0; charges < 100; ++charges) take(*limits, key, bucket);
      return !hasRow(which);
    });
  };
  {
    const KeptRows others = keep(kept);
    EXPECT_TRUE(areGone(longFull));
    EXPECT_TRUE(hasRow(kept)) << "nobody waits for it";
  }
  EXPECT_TRUE(areGone(kept));
  EXPECT_TRUE(hasRow(justFull));
  EXPECT_TRUE(hasRow(key));
}

TEST_F(PostgresRates, LookingForUnusedRowsReadsAFewPages) {
  store.server.execute(
      "INSERT INTO lockkeeper_rates (family, rate_key, unused_from) SELECT 0, n::text::bytea, "
      "9000000000000000 FROM generate_series(1, 20000) AS n");
  Environment environment;
  environment.random = std::make_shared<Zeros>();
  const auto own = limitsOf(openPostgres(store.server.uri(PostgresStore::scheme), "", environment));
  const auto rowsRead = [this] {
    store.server.endSessions();  // Then the server counts what they have read.
    return std::stoi(
        store.server.ask("SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'lockkeeper_rates'"));
  };
  const int before = rowsRead();
  for (int charges = 0; charges < 100; ++charges) take(*own, key, bucket);
  EXPECT_LT(rowsRead() - before, 10000);
  store.server.execute("TRUNCATE lockkeeper_rates");
}

TEST_F(PostgresRates, AMissingTableIsNamedWithItsSchemaAndMadeWhereThatIsWanted) {
  store.server.execute("DROP SCHEMA IF EXISTS limits CASCADE; CREATE SCHEMA limits AUTHORIZATION keeper");
  try {
    take(*limitsOf(store.open("schema=limits")), key, bucket);
    ADD_FAILURE() << "there is no table";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("rates.sql"), std::string::npos) << error.what();
  }
  EXPECT_EQ(take(*limitsOf(store.open("schema=limits&createTable=on")), key, bucket), 1);
  EXPECT_EQ(remaining(key, bucket), 100) << "that of the other schema";
}

TEST_F(PostgresRates, AMissingRightIsAConfigError) {
  store.server.execute("REVOKE UPDATE ON lockkeeper_rates FROM keeper");
  EXPECT_THROW(take(*limits, key, bucket), ConfigError);
  store.server.execute("GRANT UPDATE ON lockkeeper_rates TO keeper");
  EXPECT_EQ(take(*limits, key, bucket), 1);
}

TEST_F(PostgresRates, AChildsCopyTouchesNoSocket) {
  const auto proxied = limitsOf(store.openProxied());
  take(*proxied, key, bucket);
  EXPECT_EQ(inForkedChild([&] {
              RateCharge charge{.key = key, .law = &bucket.law()};
              if (!throwsForked([&] { proxied->take({&charge, 1}, soon()); })) return 1;
              if (!throwsForked([&] { proxied->peek({&charge, 1}, soon()); })) return 2;
              if (!throwsForked([&] { proxied->reset(key, RateKind::tokenBucket, soon()); })) return 3;
              return 0;
            }),
            0);
  EXPECT_EQ(take(*proxied, key, bucket), 1);
  EXPECT_EQ(store.proxy.connections(), 1U);
}

TEST(PostgresRatesRestart, WhatWasChargedSurvivesACrash) {
  PostgresServer server({"fsync=on"});
  server.makeLocks();
  const auto driver = openPostgres(server.uri("postgres+version"));
  const RatePolicy policy("p", {.kind = RateKind::slidingWindow, .rate = {3, 24h}});
  RateCharge charge{.key = "k", .law = &policy.law(), .cost = 2};
  capability<RateDriver>(*driver)->take({&charge, 1}, soon());
  ASSERT_EQ(charge.outcome.granted, 1);
  server.kill();
  server.restart();
  EXPECT_TRUE(waitUntil([&] {
    try {
      capability<RateDriver>(*driver)->take({&charge, 1}, soon());
      return true;
    } catch (const Error&) {  // The sessions have ended.
      return false;
    }
  }));
  EXPECT_EQ(charge.outcome.granted, 0);
  EXPECT_EQ(charge.outcome.remaining, 1);
}

}  // namespace
}  // namespace lockkeeper::test

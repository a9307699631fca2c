// Limits whose rows others keep, and callers who wait.

#include <array>
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/rate_limiter.h"
#include "rate_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

TEST_F(PostgresRates, ARowThatOthersKeepIsAnOutageOfItsKeyAlone) {
  take(*limits, key, bucket);
  {
    const KeptRows kept = keep(key);
    const Instant start = now();
    EXPECT_THROW(take(*limits, key, bucket, in(600ms)), LockTimeout);
    const std::string other = Claimant{}.key;
    std::array two{RateCharge{.key = other, .law = &bucket.law()},
                   RateCharge{.key = key, .law = &bucket.law()}};
    EXPECT_THROW(limits->take(two, in(600ms)), LockTimeout);
    EXPECT_THROW(limits->refund({.key = key, .law = &bucket.law()}, in(600ms)), LockTimeout);
    EXPECT_THROW(limits->reset(key, RateKind::tokenBucket, in(600ms)), LockTimeout);
    EXPECT_LT(now() - start, 4 * 600ms + schedulingSlack);
    EXPECT_EQ(take(*limits, Claimant{}.key, bucket), 1) << "another key";
    EXPECT_EQ(remaining(key, bucket), 99) << "who looks does not wait";
  }
  EXPECT_EQ(remaining(key, bucket), 99) << "nothing was charged, nor will be";
  EXPECT_EQ(take(*limits, key, bucket), 1);
}

TEST_F(PostgresRates, ALimiterAsksTheStoreForOtherKeysMeanwhile) {
  RateLimiter limiter(limits);
  EXPECT_FALSE(limiter.take(key, bucket).outage);
  const KeptRows kept = keep(":p:" + key);
  EXPECT_EQ(limiter.take(key, bucket).outage, ErrorCode::lockTimeout);
  EXPECT_FALSE(limiter.take(Claimant{}.key, bucket).outage);
}

// Who has waited for a session has less time left for the row, and must not be cut off in it: the store would
// count as down for all keys.
TEST_F(PostgresRates, WhoWaitedForASessionWaitsLessForTheRow) {
  const auto one = limitsOf(store.open("connections=1"));
  const std::string other = Claimant{}.key;
  take(*one, key, bucket);
  take(*one, other, bucket);
  const KeptRows kept(store.server, "SELECT FROM lockkeeper_rates WHERE rate_key IN ('" + key + "', '" +
                                        other + "') FOR UPDATE");
  auto first = std::async(std::launch::async, [&] {
    EXPECT_THROW(take(*one, other, bucket, in(30s)), LockTimeout);  // After a second.
  });
  ASSERT_TRUE(waitUntil([&] { return kept.count("wait_event_type = 'Lock'") == 1; }));
  EXPECT_THROW(take(*one, key, bucket, in(1450ms)), LockTimeout);
}

TEST_F(PostgresRates, CallersOfARowThatIsKeptLeaveSessionsToOtherKeys) {
  take(*limits, key, bucket);
  const KeptRows kept = keep(key);
  std::atomic<bool> isOver = false;
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 12; ++caller) {
    callers.emplace_back([&] {
      while (!isOver) EXPECT_THROW(take(*limits, key, bucket, in(3s)), LockTimeout);
    });
  }
  EXPECT_TRUE(waitUntil([&] { return kept.count("wait_event_type = 'Lock'") >= 2; }));
  for (int call = 0; call < 20; ++call)
    EXPECT_NO_THROW(EXPECT_EQ(take(*limits, Claimant{}.key, bucket, in(1s)), 1));
  isOver = true;
}

TEST_F(PostgresRates, SeveralRowsThatAreKeptAreWaitedForAsLongAsOne) {
  std::array<std::string, 5> keys;
  std::vector<RateCharge> charges;
  std::vector<std::jthread> keepers;
  for (std::string& each : keys) {
    each = Claimant{}.key;
    take(*limits, each, bucket);
  }
  std::ranges::sort(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    charges.push_back({.key = keys[i], .law = &bucket.law()});
    keepers.emplace_back([this, which = keys[i], until = std::to_string(0.25 * double(i + 1))] {
      store.server.execute("BEGIN; SELECT FROM lockkeeper_rates WHERE rate_key = '" + which +
                           "' FOR UPDATE; SELECT pg_sleep(" + until + "); COMMIT");
    });
  }
  ASSERT_TRUE(waitUntil([this] {
    return store.server.ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "5";
  }));
  EXPECT_THROW(limits->take(charges, in(1s)), LockTimeout);
}

// The row that it wants to lock is removed meanwhile, and another one is made and charged.
TEST_F(PostgresRates, ARefundOverwritesNoCharge) {
  const RatePolicy window = policyOf(RateKind::fixedWindow, 100);
  RateCharge ten{.key = key, .law = &window.law(), .cost = 10};
  limits->take({&ten, 1}, soon());
  store.server.execute("DROP TABLE IF EXISTS gates; CREATE TABLE gates (n INTEGER)");
  const auto waitsAt = [](const char* gate) {
    return std::string("DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM gates WHERE n = ") + gate +
           ") LOOP PERFORM pg_sleep(0.002); END LOOP; END $$; COMMIT";
  };
  const auto areWaiting = [this](const std::string& event, const std::string& sessions) {
    return waitUntil(
        [&] { return store.server.ask("SELECT count(*) FROM pg_stat_activity WHERE " + event) == sessions; });
  };
  const std::string ours = "lockkeeper_rates WHERE rate_key = '" + key + "'";
  std::jthread remaker([&] {
    store.server.execute("BEGIN; CREATE TEMP TABLE old ON COMMIT DROP AS SELECT * FROM " + ours +
                         "; DELETE FROM " + ours + "; INSERT INTO lockkeeper_rates SELECT * FROM old; " +
                         waitsAt("1"));
  });
  ASSERT_TRUE(areWaiting("wait_event = 'PgSleep'", "1"));
  std::jthread charger([&] {
    store.server.execute("BEGIN; INSERT INTO lockkeeper_rates (family, rate_key) VALUES (2, '" + key +
                         "') ON CONFLICT (family, rate_key) DO UPDATE SET second = lockkeeper_rates.second + "
                         "50; " +
                         waitsAt("2"));
  });
  ASSERT_TRUE(areWaiting("wait_event_type = 'Lock'", "1"));
  auto refunded = std::async(std::launch::async, [&] {
    return limits->refund({.key = key, .law = &window.law(), .cost = 5}, soon());
  });
  ASSERT_TRUE(areWaiting("wait_event_type = 'Lock'", "2"));
  store.server.execute("INSERT INTO gates VALUES (1)");
  EXPECT_TRUE(areWaiting("wait_event = 'PgSleep'", "1"));
  store.server.execute("INSERT INTO gates VALUES (2)");
  EXPECT_TRUE(refunded.get());
  remaker.join();
  charger.join();
  EXPECT_EQ(remaining(key, window), 100 - 10 - 50 + 5);
}

}  // namespace
}  // namespace lockkeeper::test

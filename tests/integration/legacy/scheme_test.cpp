#include <atomic>
#include <map>
#include <sstream>
#include <thread>

#include "legacy_fixture.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/legacy_driver.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class LegacyScheme : public LegacyTest {
 protected:
  RenewOutcome renew(const Claimant& claimant) {
    Renewal renewal = claimant.renewal();
    driver->renew({&renewal, 1}, soon());
    return renewal.outcome;
  }

  const std::shared_ptr<LockDriver> driver = open();
  const Claimant who{};
};

TEST_F(LegacyScheme, WritesSecondsAndATokenWithATtlALittlePastThem) {
  constexpr long long ttl = 1500;
  // The server's time in ms and the key's TTL, at one moment.
  const auto times = [&] {
    const std::string text = server.command({"EVAL",
                                             "local t = redis.call('TIME')"
                                             "return {t[1] * 1000 + math.floor(t[2] / 1000), "
                                             "redis.call('PTTL', KEYS[1])}",
                                             "1", "lock:k"});
    std::istringstream lines(text);
    std::pair<long long, long long> result;
    lines >> result.first >> result.second;
    return result;
  };
  for (int round = 0; round < 20; ++round) {
    const long long before = times().first;
    ASSERT_TRUE(granted(driver->acquire(who.request(std::chrono::milliseconds{ttl}))));
    const auto [now, left] = times();
    const std::string value = valueOf("k");
    ASSERT_EQ(value.find_first_not_of("0123456789"), 10U) << value;
    ASSERT_EQ(value.substr(10), ":" + who.token.hex() + "@test:1");
    const long long ends = std::stoll(value) * 1000;
    EXPECT_GE(ends, before + ttl + 1000) << "rounded up, and a second";
    EXPECT_LE(ends, now + ttl + 2001);
    EXPECT_GT(now + left, ends);
    EXPECT_LT(now + left, ends + 1000) << "a legacy client would see it expired, and use GETSET";
    ASSERT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
    std::this_thread::sleep_for(53ms);  // to another part of the second
  }
}

TEST_F(LegacyScheme, OurLockKeepsLegacyClientsOutAndTheirsKeepsUsOut) {
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_EQ(php("lock", {"k"}), "false");
  EXPECT_EQ(php("isLockExist", {"k"}), "true");
  EXPECT_EQ(renew(who), RenewOutcome::renewed);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(php("isLockExist", {"k"}), "false");
  EXPECT_EQ(php("lock", {"k", "100"}), "true");

  const AcquireResult refused = driver->acquire(who.request());
  ASSERT_FALSE(granted(refused));
  EXPECT_GT(std::get<Busy>(refused).retryAfter, 90s);
  EXPECT_LT(std::get<Busy>(refused).retryAfter, 103s);
  const auto holder = driver->holder("k", soon());
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->owner, "");
  EXPECT_EQ(php("unlock", {"k"}), "1");
  EXPECT_TRUE(granted(driver->acquire(who.request())));
}

TEST_F(LegacyScheme, LegacyClientsReadOurValueAsTheirOwnWhenItHasExpired) {
  put("k", inSeconds(-5) + ":" + who.token.hex() + "@test:1");
  EXPECT_EQ(php("lock", {"k"}), "true");
}

TEST_F(LegacyScheme, TakesOverWhatHasExpiredButNotBeforeTheAllowanceForClientClocksHasPassed) {
  for (const long long ago : {100LL, 4LL}) {
    put("k", inSeconds(-ago));
    EXPECT_FALSE(granted(open("&skewAllowance=10m")->acquire(who.request())));
    EXPECT_TRUE(granted(driver->acquire(who.request())));
    EXPECT_GT(ttlOf("k"), 0) << "a lock without a TTL would be the next phantom";
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  }
  put("k", inSeconds(0));
  EXPECT_FALSE(granted(open("&skewAllowance=5s")->acquire(who.request())));
}

// Of a client that computes with microtime(true), or has a serializer switched on, and of one with a long
// label.
TEST_F(LegacyScheme, TakesOverWhatOtherClientsHaveWrittenWhenItHasExpired) {
  const std::string token = ":" + who.token.hex() + "@" + std::string(300, 'x');
  const std::pair<std::string, std::string> forms[] = {
      {"", ".5"}, {"", "." + std::string(300, '5')}, {"i:", ";"}, {"d:", ".25;"}, {"d:", ";"}, {"", token}};
  for (const auto& [before, behind] : forms) {
    SCOPED_TRACE(before + "SECONDS" + behind);
    put("k", before + inSeconds(100) + behind);
    const AcquireResult refused = driver->acquire(who.request());
    ASSERT_FALSE(granted(refused));
    EXPECT_GT(std::get<Busy>(refused).retryAfter, 90s);
    EXPECT_LT(std::get<Busy>(refused).retryAfter, 105s);
    put("k", before + inSeconds(-100) + behind);
    ASSERT_TRUE(granted(driver->acquire(who.request())));
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  }
}

TEST_F(LegacyScheme, TheAuditNamesWhatOtherClientsHaveWritten) {
  put("fraction", inSeconds(100) + ".5");
  put("serialized", "d:" + inSeconds(-100) + ".5;");
  std::map<std::string, std::string> seen;
  capability<redis::LegacyRedisDriver>(*driver)->audit(
      "",
      [&](const redis::LegacyKey& key) {
        return seen.emplace(key.key, std::string(toString(key.kind)) + ": " + key.what).second;
      },
      soon());
  EXPECT_EQ(seen["fraction"], "held: unix seconds with a fraction");
  EXPECT_EQ(seen["serialized"],
            "phantom without TTL: a serialized PHP number: that client has a serializer switched on");
}

TEST_F(LegacyScheme, OnlyOneOfManyTakesOverWhatHasExpired) {
  constexpr int rounds = 100;
  constexpr int contenders = 6;
  std::vector<std::shared_ptr<LockDriver>> clients;
  for (int i = 0; i < contenders; ++i) clients.push_back(open());
  for (int round = 0; round < rounds; ++round) {
    const std::string key = "k" + std::to_string(round);
    put(key, inSeconds(-100));
    std::atomic<int> winners{0};
    {
      std::vector<std::jthread> threads;
      for (const auto& client : clients) {
        threads.emplace_back([&, client] {
          const Claimant contender{.key = key};
          if (granted(client->acquire(contender.request()))) ++winners;
        });
      }
    }
    ASSERT_EQ(winners, 1);
  }
}

TEST_F(LegacyScheme, APhantomIsWaitedForUntilItExpires) {
  put("k", inSeconds(1));
  LockManager manager(driver);
  EXPECT_TRUE(manager.tryLock("k", {.waitFor = 30s}));
}

TEST_F(LegacyScheme, NeverOverwritesByGetset) {
  put("k", inSeconds(-100));
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const std::string calls = server.command({"INFO", "commandstats"});
  EXPECT_EQ(calls.find("getset"), std::string::npos);
  EXPECT_EQ(calls.find("keys"), std::string::npos);
}

TEST_F(LegacyScheme, LooksWithoutDeletingWhatHasExpired) {
  LockManager manager(driver);
  EXPECT_FALSE(manager.isLocked("k"));
  const std::string expired = inSeconds(-100);
  put("k", expired);
  EXPECT_FALSE(manager.isLocked("k"));
  EXPECT_EQ(valueOf("k"), expired);
  put("k", inSeconds(100));
  EXPECT_TRUE(manager.isLocked("k"));
  EXPECT_EQ(php("isLockExist", {"k"}), "true");
}

TEST_F(LegacyScheme, ListsBothKindsOfLocks) {
  put("theirs", inSeconds(100));
  put("expired", inSeconds(-100));
  put("junk", "junk");
  const Claimant ours{.key = "ours"};
  ASSERT_TRUE(granted(driver->acquire(ours.request())));
  std::map<std::string, std::string> seen;
  capability<Browsable>(*driver)->list(
      "", [&](std::string_view key, const Holder& by) { return seen.emplace(key, by.owner).second; }, soon());
  EXPECT_EQ(seen, (std::map<std::string, std::string>{{"ours", "test:1"}, {"theirs", ""}}));
}

struct Foreign {
  std::vector<std::string> command;  // that makes the key
  std::string what;
};

TEST_F(LegacyScheme, ReportsForeignValuesAndNeverTakesThemOver) {
  const std::vector<Foreign> all{
      {{"SET", "lock:k", "1000000000000"}, "milliseconds"},
      {{"SET", "lock:k", "9007199254740993"}, "beyond 2^53"},
      {{"SET", "lock:k", "i:1000000000000;"}, "serialized PHP number that is no time"},
      {{"SET", "lock:k", "42"}, "no time in unix seconds"},
      {{"SET", "lock:k", "-1000000000"}, "no number"},
      {{"SET", "lock:k", "1000000000:"}, "no number"},
      {{"SET", "lock:k", "junk"}, "no number"},
      {{"SET", "lock:k", ""}, "an empty string"},
      {{"SET", "lock:k", std::string(3U << 20, '1')}, "beyond 2^53"},
      {{"HSET", "lock:k", "field", "1000000000"}, "type hash"},
      {{"RPUSH", "lock:k", "1000000000"}, "type list"},
  };
  for (const Foreign& foreign : all) {
    SCOPED_TRACE(foreign.what);
    server.command({"DEL", "lock:k"});
    server.command(foreign.command);
    const std::string before = server.command({"DUMP", "lock:k"});
    for (const std::string mode : {"&pure=false", "&pure=true"}) {
      const auto heard = std::make_shared<Witness>();
      Environment watched;
      watched.listener = heard;
      StoreRegistry registry;
      redis::use(registry);
      const auto fresh = registry.open(uri(mode), watched);
      const AcquireResult result = fresh->acquire(who.request());
      ASSERT_FALSE(granted(result));
      EXPECT_FALSE(std::get<Busy>(result).retryAfter);
      EXPECT_NE(fresh->release(who.claim(), soon()), ReleaseOutcome::released);
      Renewal renewal = who.renewal();
      fresh->renew({&renewal, 1}, soon());
      EXPECT_EQ(renewal.outcome, RenewOutcome::ownerUnknown);
      EXPECT_TRUE(fresh->holder("k", soon()));
      EXPECT_TRUE(heard->heard("'lock:k' holds ")) << heard->text();
      EXPECT_TRUE(heard->heard(foreign.what)) << heard->text();
    }
    EXPECT_EQ(server.command({"DUMP", "lock:k"}), before);
  }
}

/// In both ways of writing.
class LegacyLoss : public LegacyTest, public ::testing::WithParamInterface<const char*> {
 protected:
  ManagerOptions options() const {
    ManagerOptions result;
    result.environment = environment();
    return result;
  }
  bool told() const { return witness->heard(std::string("k lost: ") + uncertain); }

  LockManager manager{open(GetParam()), options()};
};

TEST_P(LegacyLoss, BareDigitsInPlaceOfOurValueAreFoundAtTheNextRenewalAndLeftAlone) {
  Lock lock = manager.lock("k", {.ttl = 1500ms});
  // The loser of a take-over overwrites the winner's value, and its TTL is gone. It may write the same
  // seconds.
  const std::string digits = valueOf("k").substr(0, 10);
  ASSERT_NE(server.command({"GETSET", "lock:k", digits}), "(nil)");
  ASSERT_TRUE(waitUntil([&] { return lock.lost().stop_requested(); }));
  ASSERT_TRUE(waitUntil([&] { return told(); })) << witness->text();
  EXPECT_EQ(lock.state(), LockState::lost);
  EXPECT_EQ(lock.release(), ReleaseResult::notOwner);
  EXPECT_EQ(valueOf("k"), digits);
  EXPECT_EQ(ttlOf("k"), -1);
}

TEST_P(LegacyLoss, BareDigitsInPlaceOfOurValueAreFoundAtTheRelease) {
  Lock lock = manager.lock("k");
  const std::string digits = inSeconds(100);
  put("k", digits);
  EXPECT_EQ(lock.release(), ReleaseResult::notOwner);
  EXPECT_TRUE(told()) << witness->text();
  EXPECT_FALSE(witness->heard("k released"));
  EXPECT_EQ(valueOf("k"), digits);
}

TEST_P(LegacyLoss, ALegacyClientThatDeletesOurKeyIsFoundBeforeWeReleaseTheNextHoldersLock) {
  Lock lock = manager.lock("k");
  EXPECT_EQ(php("unlock", {"k"}), "1");
  EXPECT_EQ(php("lock", {"k"}), "true");
  const std::string theirs = valueOf("k");
  EXPECT_THROW(lock.renew(), LockLost);
  EXPECT_TRUE(waitUntil([&] { return told(); })) << witness->text();
  EXPECT_EQ(lock.release(), ReleaseResult::notOwner);
  EXPECT_EQ(valueOf("k"), theirs);
}

TEST_P(LegacyLoss, AKeyThatVanishedIsUncertain) {
  Lock lock = manager.lock("k");
  EXPECT_EQ(php("unlock", {"k"}), "1");
  EXPECT_EQ(lock.release(), ReleaseResult::notOwner);
  EXPECT_TRUE(told()) << witness->text();
}

TEST_P(LegacyLoss, AClientWhoseClockIsFarAheadStealsTheLockAndWeAreTold) {
  Lock lock = manager.lock("k", {.ttl = 2s});
  EXPECT_EQ(php("lock", {"k", "3", "0"}), "false");
  EXPECT_EQ(php("lock", {"k", "3", "20"}), "true");
  EXPECT_TRUE(waitUntil([&] { return !lock.valid(); }));
  EXPECT_TRUE(waitUntil([&] { return told(); })) << witness->text();
}

TEST_P(LegacyLoss, AnotherOfOursThatHoldsTheKeyIsNoDoubt) {
  Lock lock = manager.lock("k");
  EXPECT_EQ(php("unlock", {"k"}), "1");
  LockManager other(open(GetParam()));
  const Lock next = other.lock("k");
  EXPECT_EQ(lock.release(), ReleaseResult::notOwner);
  EXPECT_TRUE(witness->heard("k lost: not the owner")) << witness->text();
  EXPECT_TRUE(next.valid());
}

INSTANTIATE_TEST_SUITE_P(Token, LegacyLoss, ::testing::Values(""));
INSTANTIATE_TEST_SUITE_P(Pure, LegacyLoss, ::testing::Values("&pure=true"));

using PureLegacy = LegacyTest;

TEST_F(PureLegacy, WritesDigitsAndKeepsTheTokenBeside) {
  const auto driver = open("&pure=true");
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_EQ(valueOf("k").size(), 10U) << valueOf("k");
  EXPECT_EQ(valueOf("k").find_first_not_of("0123456789"), std::string::npos) << valueOf("k");
  EXPECT_GT(ttlOf("k"), 0);
  EXPECT_EQ(driver->holder("k", soon())->owner, "test:1");
  EXPECT_EQ(open()->holder("k", soon())->owner, "") << "for those who do not look beside it";
  EXPECT_EQ(php("lock", {"k"}), "false");
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(server.command({"DBSIZE"}), "0");
}

}  // namespace
}  // namespace lockkeeper::test

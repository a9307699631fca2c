// Shares of a key beside the row of its lock: what is left of them, who else knows the row, and who may do
// what.

#include <Poco/Data/Session.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "refusal.h"
#include "version/version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

Claimant sharer(const std::string& key, std::uint32_t weight, std::uint32_t limit) {
  Claimant who;
  who.key = key;
  who.share = Share{weight, limit};
  return who;
}

class VersionShare : public VersionTest {
 protected:
  bool grants(const Claimant& who) { return granted(store.direct->acquire(who.request())); }
  bool releases(const Claimant& who) {
    return store.direct->release(who.claim(), soon()) == ReleaseOutcome::released;
  }
  RenewOutcome renewalOf(const Claimant& who) {
    Renewal renewal{.claim = who.claim(), .ttl = longTtl};
    store.direct->renew({&renewal, 1}, soon());
    return renewal.outcome;
  }
  std::size_t holders(const std::string& key) {
    return capability<Permits>(*store.direct)->shareHolders(key, soon()).size();
  }
  void grantForAMoment(const Claimant& who) {
    AcquireRequest request = who.request();
    request.ttl = 50ms;
    ASSERT_TRUE(granted(store.direct->acquire(request)));
  }
  /// Somebody has died who shared the key.
  void leaveAShareOf(const std::string& key) {
    const Claimant other = sharer(key, 1, 3);
    ASSERT_TRUE(grants(other));
    grantForAMoment(sharer(key, 1, 3));
    ASSERT_TRUE(releases(other));
  }
  static void releaseAShare(LockDriver& client) {
    const Claimant who = sharer("any", 1, 3);
    ASSERT_TRUE(granted(client.acquire(who.request())));
    ASSERT_EQ(client.release(who.claim(), soon()), ReleaseOutcome::released);
  }
  std::string rowsOfShares() { return store.ask("SELECT COUNT(*) FROM lockkeeper_locks_shares"); }
};

TEST_P(VersionShare, TheRowOfASharedKeyLooksHeldUntilTheLongestLeaseEnds) {
  const Claimant longest = sharer("k", 1, 3);
  const Claimant other = sharer("k", 1, 3);
  ASSERT_TRUE(grants(longest));
  AcquireRequest brief = other.request();
  brief.ttl = 1min;
  ASSERT_TRUE(granted(store.direct->acquire(brief)));
  EXPECT_EQ(store.ask("SELECT CONCAT(token, ' ', TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(6), expires_at)) "
                      "FROM lockkeeper_locks"),
            "shares/3/2 9");
  ASSERT_TRUE(releases(longest));
  EXPECT_EQ(store.ask("SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), expires_at) BETWEEN 1 AND 60 "
                      "FROM lockkeeper_locks"),
            "1");
  ASSERT_TRUE(releases(other));
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE token = '' AND owner = ''"), "1");
  EXPECT_EQ(rowsOfShares(), "0");
}

TEST_P(VersionShare, AShareWithoutOthersStandsInTheRowOfItsKey) {
  const Claimant first = sharer("k", 2, 3);
  ASSERT_TRUE(grants(first));
  EXPECT_EQ(store.ask("SELECT CONCAT(owner, ' ', token = '" + first.token.hex() + "') FROM lockkeeper_locks"),
            "test:1@2/3@0 1");
  EXPECT_EQ(rowsOfShares(), "0");
  const auto shown = capability<Permits>(*store.direct)->shareHolders("k", soon());
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0].owner, "test:1");
  EXPECT_EQ(shown[0].share, (Share{2, 3}));
  EXPECT_EQ(renewalOf(first), RenewOutcome::renewed);

  const Claimant second = sharer("k", 1, 3);
  ASSERT_TRUE(grants(second));
  EXPECT_EQ(rowsOfShares(), "2");
  const auto both = capability<Permits>(*store.direct)->shareHolders("k", soon());
  ASSERT_EQ(both.size(), 2U);
  EXPECT_TRUE(both[0].grantId == shown[0].grantId || both[1].grantId == shown[0].grantId);
  EXPECT_GT(std::min(both[0].remaining, both[1].remaining), longTtl / 2);
  EXPECT_EQ(renewalOf(first), RenewOutcome::renewed);
  EXPECT_TRUE(releases(first));
  EXPECT_TRUE(releases(second));
  EXPECT_EQ(rowsOfShares(), "0");
}

TEST_P(VersionShare, AnOwnerForWhomTheRowHasNoRoomSharesAllTheSame) {
  const Claimant who = sharer("k", 1, Share::most);
  const std::string longest(64, 'o');
  Claim claim = who.claim();
  claim.owner = longest;
  ASSERT_TRUE(granted(store.direct->acquire({.claim = claim, .ttl = longTtl, .deadline = soon()})));
  EXPECT_EQ(rowsOfShares(), "1");
  EXPECT_EQ(store.direct->holder("k", soon()).value().owner, claim.owner);
  EXPECT_TRUE(grants(sharer("k", 1, Share::most)));
  EXPECT_EQ(store.direct->release(claim, soon()), ReleaseOutcome::released);
}

TEST_P(VersionShare, NothingIsLeftInTheRowOfOneThatWasAloneAndHasDied) {
  grantForAMoment(sharer("k", 1, 3));
  ASSERT_TRUE(waitUntil([&] { return store.isFree("k"); }));
  const Claimant who = sharer("k", 3, 3);
  const std::string longest(64, 'o');
  Claim claim = who.claim();
  claim.owner = longest;
  ASSERT_TRUE(
      granted(store.direct->acquire({.claim = claim, .ttl = longTtl, .deadline = soon(), .resend = true})));
  EXPECT_EQ(store.ask("SELECT owner FROM lockkeeper_locks"), "");
  EXPECT_FALSE(grants(sharer("k", 1, 3)));
  // As a version that knows of no share in the row of its key would have left it.
  store.server.execute("UPDATE " + store.database + ".lockkeeper_locks SET owner = 'test:1@1/3@0'");
  EXPECT_FALSE(grants(sharer("k", 1, 3)));
  Renewal renewal{.claim = claim, .ttl = longTtl};
  store.direct->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
}

TEST_P(VersionShare, OneThatIsBrokenOrResizedMayBeAlone) {
  const Claimant first = sharer("k", 1, 3);
  ASSERT_TRUE(grants(first));
  Permits& permits = *capability<Permits>(*store.direct);
  ASSERT_TRUE(permits.resize("k", 2, soon()));
  EXPECT_THAT(refusalOf<ConfigError>([&] { (void)store.direct->acquire(sharer("k", 1, 3).request()); }),
              HasSubstr("2"));
  EXPECT_EQ(permits.shareHolders("k", soon()).at(0).share, (Share{1, 2}));
  EXPECT_TRUE(releases(first));

  Breakable& breakable = *capability<Breakable>(*store.direct);
  ASSERT_TRUE(grants(sharer("k", 1, 3)));
  const Holder shown = permits.shareHolders("k", soon()).at(0);
  Holder other = shown;
  other.grantId = "0123456789abcdef";
  EXPECT_FALSE(breakable.breakLock("k", soon(), &other));
  EXPECT_TRUE(breakable.breakLock("k", soon(), &shown));
  EXPECT_TRUE(store.isFree("k"));
  ASSERT_TRUE(grants(sharer("k", 1, 3)));
  EXPECT_TRUE(breakable.breakLock("k", soon()));
  EXPECT_TRUE(store.isFree("k"));
  EXPECT_EQ(rowsOfShares(), "0");
}

TEST_P(VersionShare, AWriterFromBeforeTheClockWasSetBackHoldsUpNobody) {
  const auto markFarAhead = [&](const std::string& before) {
    store.server.execute("UPDATE " + store.database + ".lockkeeper_locks SET owner = CONCAT('" + before +
                         "@', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 3600000000)");
  };
  ASSERT_TRUE(grants(sharer("k", 1, 4)));
  markFarAhead("test:1@1/4");
  EXPECT_TRUE(grants(sharer("k", 1, 4)));
  markFarAhead("");
  const Claimant third = sharer("k", 1, 4);
  AcquireRequest again = third.request();
  again.resend = true;
  EXPECT_TRUE(granted(store.direct->acquire(again))) << "it looks at all that there is";
  EXPECT_TRUE(grants(sharer("k", 1, 4)));
}

// As a version of lockkeeper that knows of no shares does it, and an operator.
TEST_P(VersionShare, SharesOfARowThatSomebodyElseHasFreedCountNoMore) {
  const Claimant first = sharer("k", 2, 3);
  const Claimant second = sharer("k", 1, 3);
  ASSERT_TRUE(grants(first) && grants(second));
  store.server.execute("UPDATE " + store.database +
                       ".lockkeeper_locks SET token = '', owner = '', expires_at = UTC_TIMESTAMP(6)");
  EXPECT_EQ(holders("k"), 0U);
  EXPECT_EQ(renewalOf(first), RenewOutcome::notOwner);
  EXPECT_FALSE(releases(first));
  Claimant whole;
  whole.key = "k";
  EXPECT_TRUE(grants(whole));
  EXPECT_EQ(renewalOf(first), RenewOutcome::notOwner);
  EXPECT_FALSE(grants(sharer("k", 1, 3))) << "one has all of it";
  EXPECT_TRUE(releases(whole));
  const Claimant next = sharer("k", 3, 3);
  EXPECT_TRUE(grants(next)) << "the former ones are not counted";
  EXPECT_EQ(renewalOf(second), RenewOutcome::notOwner);
  EXPECT_EQ(holders("k"), 1U);
  EXPECT_TRUE(releases(next));
  EXPECT_EQ(rowsOfShares(), "1") << "the second one's, which nobody has needed to look at";
  const Claimant third = sharer("k", 2, 3);
  const Claimant fourth = sharer("k", 1, 3);
  EXPECT_TRUE(grants(third) && grants(fourth));
  EXPECT_EQ(rowsOfShares(), "2");
  EXPECT_EQ(renewalOf(second), RenewOutcome::notOwner);
  EXPECT_TRUE(releases(third) && releases(fourth));
  EXPECT_EQ(rowsOfShares(), "0");
}

TEST_P(VersionShare, WhatTheDeadLeaveBehindIsClearedAway) {
  releaseAShare(*store.direct);  // It has cleared up, and does not again so soon.
  for (int number = 0; number < 30; ++number) leaveAShareOf("dead-" + std::to_string(number));
  Claimant writer;
  writer.key = "dead-29";  // the last one that ends
  ASSERT_TRUE(waitUntil([&] { return grants(writer); }));
  const Claimant alive = sharer("alive", 1, 3);
  ASSERT_TRUE(grants(alive) && grants(sharer("alive", 1, 3)));
  ASSERT_EQ(rowsOfShares(), "32");
  // Some with the first release of a client, and not again and again.
  int left = 32;
  for (const Instant end = in(2min); left > 2 && now() < end;) {
    const auto client = store.open();
    releaseAShare(*client);
    const int before = std::exchange(left, std::stoi(rowsOfShares()));
    EXPECT_GE(left, before - 20);
    releaseAShare(*client);
    EXPECT_EQ(rowsOfShares(), std::to_string(left));
  }
  EXPECT_EQ(left, 2);
  EXPECT_EQ(renewalOf(alive), RenewOutcome::renewed);
  EXPECT_EQ(renewalOf(writer), RenewOutcome::renewed);
}

TEST_P(VersionShare, WhatTheDeadLeaveBehindIsClearedAwayWithoutWaitingForOthers) {
  for (int number = 0; number < 3; ++number) leaveAShareOf("dead-" + std::to_string(number));
  ASSERT_TRUE(waitUntil([&] { return holders("dead-2") == 0; }));
  Poco::Data::Session other = store.session();
  other.begin();
  other << "SELECT 1 FROM lockkeeper_locks WHERE lock_key = 'dead-1' FOR UPDATE", Poco::Data::Keywords::now;
  const std::int64_t waits = store.status("Innodb_row_lock_waits");
  waitUntil([&] {
    releaseAShare(*store.open());
    return rowsOfShares() == "1";
  });
  EXPECT_EQ(store.status("Innodb_row_lock_waits"), waits);
  EXPECT_EQ(store.ask("SELECT lock_key FROM lockkeeper_locks_shares"), "dead-1");
  other.rollback();
  waitUntil([&] {
    releaseAShare(*store.open());
    return rowsOfShares() == "0";
  });
  EXPECT_EQ(rowsOfShares(), "0");
}

class VersionShareRights : public VersionShare {
 protected:
  /// Of an account with these rights and no others.
  std::shared_ptr<LockDriver> open(const std::vector<std::string>& rights, const std::string& query) {
    store.server.execute("CREATE USER '" + store.database + "'@'127.0.0.1' IDENTIFIED BY 'x'");
    for (const std::string& each : rights)
      store.server.execute("GRANT " + each + " TO '" + store.database + "'@'127.0.0.1'");
    StoreRegistry registry;
    mysql::use(registry);
    return registry.open("mysql+version://" + store.database + ":x@127.0.0.1:" +
                         std::to_string(store.server.port()) + "/" + store.database + query);
  }
  const std::string locks = store.database + ".lockkeeper_locks";
  const std::string shares = store.database + ".lockkeeper_locks_shares";
};

TEST_P(VersionShareRights, LocksNeedNoTableOfShares) {
  (void)store.direct->holder("makes the table", soon());
  const auto driver = open({"SELECT, INSERT, UPDATE ON " + locks, "SELECT ON " + store.database + ".*"}, "");
  Claimant whole;
  ASSERT_TRUE(granted(driver->acquire(whole.request())));
  EXPECT_TRUE(driver->holder(whole.key, soon()));
  EXPECT_TRUE(capability<Permits>(*driver)->shareHolders(whole.key, soon()).empty());
  EXPECT_FALSE(capability<Permits>(*driver)->resize(whole.key, 3, soon()));
  EXPECT_TRUE(capability<Breakable>(*driver)->breakLock(whole.key, soon()));
  EXPECT_FALSE(capability<Breakable>(*driver)->breakLock(whole.key, soon()));
  EXPECT_THAT(refusalOf<ConfigError>([&] { (void)driver->acquire(sharer("k", 1, 3).request()); }),
              AllOf(HasSubstr("lockkeeper_locks_shares' doesn't exist"), HasSubstr("version.sql"),
                    HasSubstr("createTable=true")));
  Claimant next;
  next.key = "k";
  EXPECT_TRUE(granted(driver->acquire(next.request()))) << "nothing was taken, and no row is kept";
}

TEST_P(VersionShareRights, BothTablesAreMadeWhereThatIsWanted) {
  const auto driver = open(
      {"SELECT, INSERT, UPDATE, CREATE ON " + locks, "SELECT, INSERT, UPDATE, DELETE, CREATE ON " + shares},
      "?createTable=true");
  const Claimant who = sharer("k", 1, 3);
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_P(VersionShareRights, WhatIsThereNeedNotBeMade) {
  (void)store.direct->holder("makes the table of locks", soon());
  const auto driver =
      open({"SELECT, INSERT, UPDATE ON " + locks, "SELECT ON " + store.database + ".*"}, "?createTable=true");
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
  EXPECT_THAT(refusalOf<ConfigError>([&] { (void)driver->acquire(sharer("k", 1, 3).request()); }),
              AllOf(HasSubstr("CREATE command denied"), HasSubstr("lockkeeper_locks_shares")));
  EXPECT_TRUE(grants(sharer("k", 2, 2))) << "nothing was taken";
}

TEST_P(VersionShareRights, AMissingRightIsNamed) {
  ASSERT_TRUE(grants(sharer("makes both tables", 1, 3)));
  const auto driver = open({"SELECT, INSERT, UPDATE ON " + store.database + ".*"}, "");
  EXPECT_THAT(refusalOf<ConfigError>([&] { (void)driver->acquire(sharer("k", 1, 3).request()); }),
              AllOf(HasSubstr("DELETE command denied"), HasSubstr("lockkeeper_locks_shares")));
  EXPECT_TRUE(grants(sharer("k", 2, 2))) << "nothing was taken";
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionShare, ::testing::ValuesIn(allBrands), brandName);
INSTANTIATE_TEST_SUITE_P(Brands, VersionShareRights, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

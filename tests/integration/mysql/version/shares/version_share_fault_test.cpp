// Holders of shares that are killed, calls that are broken off, rows that others keep.

#include <Poco/Data/Session.h>

#include <atomic>
#include <list>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "held_shares.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/permit/semaphore.h"
#include "paused_reader.h"
#include "process.h"
#include "succeeds_in_the_end.h"
#include "version/version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class VersionShareFault : public VersionTest {
 protected:
  static constexpr std::uint32_t limit = 5;

  static std::vector<Claimant> sharers(std::size_t count, std::size_t keys) {
    std::vector<Claimant> all(count);
    for (std::size_t each = 0; each < count; ++each) {
      all[each].key = "k" + std::to_string(each % keys);
      all[each].share = Share{1, Share::most};
    }
    return all;
  }
  std::vector<std::string> memberThat(const std::string& task) const {
    const std::string uri = DatabaseServer::uri(store.database, store.server.port());
    return {PERMIT_MEMBER, "mysql+version" + uri.substr(uri.find("://")) + "?createTable=true", task};
  }
  Process member() { return Process(memberThat(std::to_string(1 + random() % 3))); }
  std::uint32_t taken() const {
    const auto holders = capability<Permits>(*store.direct)->shareHolders("s", soon());
    return std::accumulate(holders.begin(), holders.end(), std::uint32_t{0},
                           [](std::uint32_t sum, const Holder& each) { return sum + each.share->weight; });
  }

  std::mt19937 random{std::random_device{}()};
};

TEST_P(VersionShareFault, AfterRandomKillsTheCountIsExactWithinATtlAndNothingIsLeft) {
  std::list<Process> members;
  for (int number = 0; number < 5; ++number) members.push_back(member());
  ASSERT_TRUE(waitUntil([&] { return taken() > 0; }));
  for (int kills = 0; kills < 40; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds{random() % 60});
    ASSERT_LE(taken(), limit);
    members.erase(std::next(members.begin(), static_cast<std::ptrdiff_t>(random() % members.size())));
    members.push_back(member());
  }
  members.clear();
  const Instant dead = now();
  ASSERT_TRUE(waitUntil([&] { return taken() == 0; }));
  EXPECT_LT(now() - dead, 1s + schedulingSlack) << "the ttl is one";
  LockManager manager(store.direct);
  Semaphore semaphore(manager, "s", limit);
  auto whole = manager.tryLock("k", {.waitFor = 20s});
  auto all = semaphore.tryAcquire(limit, 20s);
  ASSERT_TRUE(all && whole);
  EXPECT_EQ(whole->release(), ReleaseResult::released);
  EXPECT_EQ(all->release(), ReleaseResult::released);
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks_shares"), "0");
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks WHERE token <> ''"), "0");
}

TEST_P(VersionShareFault, AReaderThatStandsStillCountsForItsTtlAndIsTold) {
  LockManager manager(store.direct);
  expectAPausedReaderToLose(memberThat("read"), manager);
}

TEST_P(VersionShareFault, KilledSessionsCostNoShare) {
  const auto all = sharers(3, 1);
  for (const Claimant& each : all) ASSERT_TRUE(granted(store.direct->acquire(each.request())));
  store.server.killSessions();
  ASSERT_TRUE(waitUntil([&] { return store.server.sessions() == 0; }));
  for (const Claimant& each : all) {
    Renewal renewal{.claim = each.claim(), .ttl = longTtl};
    store.direct->renew({&renewal, 1}, soon());
    EXPECT_EQ(renewal.outcome, RenewOutcome::renewed) << renewal.cause;
    EXPECT_EQ(store.direct->release(each.claim(), soon()), ReleaseOutcome::released);
  }
}

TEST_P(VersionShareFault, ARestartOfTheServerKeepsSharesAndTheirCount) {
  LockManager manager(store.direct);
  HeldShares shares(manager, {.ttl = longTtl});
  store.server.kill();
  EXPECT_THROW((void)shares.semaphore.tryAcquire(1, 0s), Error);
  store.server.restart();

  LockManager other(store.open());
  shares.expectTaken(other);
  EXPECT_EQ(taken(), limit);
  for (Lock& each : shares.held) {
    EXPECT_NO_THROW(each.renew());
    EXPECT_TRUE(each.valid());
  }
  shares.expectExactCount(other);
}

TEST_P(VersionShareFault, ALostReplyIsAskedForAgainAndCountedOnce) {
  const auto driver = store.openProxied();
  const auto all = sharers(3, 1);
  const auto shown = [&] { return capability<Permits>(*store.direct)->shareHolders("k0", soon()).size(); };
  const auto claimWithALostReply = [&](const Claimant& who) {
    store.proxy.cutReplies(1, Ending::fin);
    EXPECT_THROW((void)driver->acquire(who.request()), OutcomeUnknown);
    EXPECT_EQ(store.proxy.fired(), 1U);
    EXPECT_TRUE(granted(driver->acquire(who.request(soon(), true))));
  };
  Claimant before = all[0];
  before.key = "prepares the statement";
  ASSERT_TRUE(granted(driver->acquire(before.request())));
  claimWithALostReply(all[0]);
  EXPECT_EQ(shown(), 1U);
  ASSERT_TRUE(granted(store.direct->acquire(all[1].request())));
  claimWithALostReply(all[2]);
  EXPECT_EQ(shown(), 3U);
  // What was granted while the share was alone is found again where it is now.
  EXPECT_TRUE(granted(driver->acquire(all[0].request(soon(), true))));
  EXPECT_EQ(shown(), 3U);
  for (const Claimant& each : all) EXPECT_EQ(driver->release(each.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(shown(), 0U);
}

// Others make a share that was alone move, while its holder renews it, gives it back and takes it again.
TEST_P(VersionShareFault, AShareThatMovesIsNeitherLostNorCountedTwice) {
  std::atomic<bool> over = false;
  std::atomic<int> together = 0;
  const auto use = [&](const Claimant& pattern) {
    while (!over) {
      Claimant who;
      who.key = pattern.key;
      who.share = pattern.share;
      bool resend = false;
      succeedsInTheEnd([&] {
        EXPECT_TRUE(granted(store.direct->acquire(who.request(soon(), std::exchange(resend, true)))));
      });
      succeedsInTheEnd([&] {
        if (capability<Permits>(*store.direct)->shareHolders(who.key, soon()).size() > 1) ++together;
      });
      Renewal renewal{.claim = who.claim(), .ttl = longTtl};
      store.direct->renew({&renewal, 1}, soon());
      EXPECT_NE(renewal.outcome, RenewOutcome::notOwner);
      succeedsInTheEnd(
          [&] { EXPECT_EQ(store.direct->release(who.claim(), soon()), ReleaseOutcome::released); });
    }
  };
  Claimant pattern;
  pattern.share = Share{1, 3};
  {
    std::vector<std::jthread> threads;
    for (int number = 0; number < 3; ++number) threads.emplace_back(use, pattern);
    EXPECT_TRUE(waitUntil([&] { return together > 100 || HasFailure(); }));
    over = true;
  }
  EXPECT_TRUE(store.isFree(pattern.key));
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks_shares"), "0");
}

TEST_P(VersionShareFault, RenewalsOfManyKeysAndClaimsOfEachMakeNoDeadlock) {
  constexpr std::size_t keys = 5;
  const auto held = sharers(200, keys);
  for (const Claimant& each : held) ASSERT_TRUE(granted(store.direct->acquire(each.request())));
  std::atomic<int> errors = 0;
  std::atomic<int> renewed = 0;
  const auto renewing = [&](bool backwards) {
    std::vector<Renewal> renewals;
    for (const Claimant& each : held)
      renewals.insert(backwards ? renewals.begin() : renewals.end(), {.claim = each.claim(), .ttl = longTtl});
    for (int round = 0; round < 30; ++round) {
      store.direct->renew(renewals, soon());
      for (const Renewal& each : renewals) {
        if (each.outcome == RenewOutcome::renewed)
          ++renewed;
        else if (errors++ == 0)
          ADD_FAILURE() << each.cause;
      }
    }
  };
  const auto claiming = [&] {
    for (const Claimant& each : sharers(60, keys)) {
      try {
        AcquireRequest request = each.request();
        request.ttl = 3 * longTtl;
        bool right = granted(store.direct->acquire(request));
        // What the row of the key says must not fall behind.
        const auto longest = store.direct->holder(each.key, soon());
        right = right && longest && longest->remaining > 2 * longTtl;
        if (!right || store.direct->release(each.claim(), soon()) != ReleaseOutcome::released) ++errors;
      } catch (const Error& error) {
        if (errors++ == 0) ADD_FAILURE() << error.what();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.emplace_back(renewing, false);
    threads.emplace_back(renewing, true);
    for (int number = 0; number < 4; ++number) threads.emplace_back(claiming);
  }
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(renewed, 2 * 30 * static_cast<int>(held.size()));
}

TEST_P(VersionShareFault, ARowThatSomebodyKeepsHoldsUpNoOtherRenewal) {
  const auto held = sharers(6, 3);
  for (const Claimant& each : held) ASSERT_TRUE(granted(store.direct->acquire(each.request())));
  std::vector<Renewal> renewals;
  for (const Claimant& each : held) renewals.push_back({.claim = each.claim(), .ttl = 2 * longTtl});
  Claimant alone;
  alone.share = Share{1, Share::most};
  ASSERT_TRUE(granted(store.direct->acquire(alone.request())));
  renewals.push_back({.claim = alone.claim(), .ttl = 2 * longTtl});
  Poco::Data::Session sql = store.session();
  sql.begin();
  sql << "SELECT 1 FROM lockkeeper_locks WHERE lock_key = 'k1' FOR UPDATE", Poco::Data::Keywords::now;
  store.direct->renew(renewals, in(3s));
  sql.rollback();
  for (std::size_t each = 0; each < renewals.size(); ++each) {
    const bool kept = each % 3 == 1;
    EXPECT_EQ(renewals[each].outcome, kept ? RenewOutcome::unavailable : RenewOutcome::renewed) << each;
    EXPECT_EQ(renewals[each].cause.find("keeps the row") != std::string::npos, kept) << renewals[each].cause;
  }
  EXPECT_EQ(store.ask("SELECT COUNT(*) FROM lockkeeper_locks_shares WHERE expires_us > "
                      "TIMESTAMPDIFF(MICROSECOND, DATE'1970-01-01', UTC_TIMESTAMP(6)) + 900000000"),
            "4");
}

// The share is not in the row of the key; whether it is in the other table is not known.
TEST_P(VersionShareFault, ARenewalThatIsHeldUpInTheTableOfSharesIsNoLoss) {
  const auto held = sharers(2, 1);
  for (const Claimant& each : held) ASSERT_TRUE(granted(store.direct->acquire(each.request())));
  Renewal renewal{.claim = held[0].claim(), .ttl = longTtl};
  Poco::Data::Session sql = store.session();
  sql.begin();
  sql << "SELECT 1 FROM lockkeeper_locks_shares FOR UPDATE", Poco::Data::Keywords::now;
  store.direct->renew({&renewal, 1}, in(3s));
  sql.rollback();
  EXPECT_EQ(renewal.outcome, RenewOutcome::unavailable) << renewal.cause;
  store.direct->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed) << renewal.cause;
}

TEST_P(VersionShareFault, MoreThanOneCallTakesAreRenewedEachForItsTtl) {
  const auto held = sharers(1100, 1);
  ASSERT_TRUE(granted(store.direct->acquire(held[0].request()))) << "makes the table";
  {
    std::vector<std::jthread> threads;
    for (std::size_t first = 0; first < 4; ++first) {
      threads.emplace_back([&, first] {
        for (std::size_t each = first; each < held.size(); each += 4)
          EXPECT_TRUE(granted(store.direct->acquire(held[each].request())));
      });
    }
  }
  std::vector<Renewal> renewals;
  for (const Claimant& each : held) renewals.push_back({.claim = each.claim(), .ttl = longTtl});
  renewals.front().ttl = 3 * longTtl;
  store.direct->renew(renewals, now() + 1min);  // the thread sanitizer is slow
  for (const Renewal& each : renewals) ASSERT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
  EXPECT_GT(store.direct->holder("k0", soon())->remaining, 2 * longTtl);
  EXPECT_EQ(store.direct->release(held.front().claim(), soon()), ReleaseOutcome::released);
  EXPECT_LE(store.direct->holder("k0", soon())->remaining, longTtl);
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionShareFault, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

// What goes wrong with one claim is that claim's own affair: its session, its name and its neighbours go on.

#include <Poco/Data/Session.h>

#include <future>

#include "getlock/fence_counter.h"
#include "getlock/getlock_options.h"
#include "getlock/session/lock_sessions.h"
#include "getlock_fixture.h"
#include "hosts/session_opener.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class GetLockOneKey : public GetLockTest {};

/// Only MariaDB lets a test hold commits back.
TEST(GetLockOneKeyOnMariadb, ACommitThatStallsCostsNobodyElseALock) {
  GetLockStore store(Brand::mariadb);
  const auto driver = store.open("connections=1&ioTimeout=1s");
  std::vector<Claimant> held(8);
  for (const Claimant& each : held) ASSERT_TRUE(granted(driver->acquire(requestFor(each, 1min))));
  Poco::Data::Session backup("MySQL", store.server.connectionString(store.database), 10);
  for (const char* stage : {"START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"}) {
    backup << std::string("BACKUP STAGE ") + stage, Poco::Data::Keywords::now;
  }
  const Claimant ninth{};
  AcquireRequest request = requestFor(ninth, 1min);
  request.deadline = in(500ms);
  EXPECT_THROW((void)driver->acquire(request), StoreUnavailable) << "it certainly holds nothing";
  EXPECT_TRUE(store.isFree(ninth.key));
  for (const Claimant& each : held) EXPECT_EQ(renew(*driver, each, 1min), RenewOutcome::renewed);
  backup << "BACKUP STAGE END", Poco::Data::Keywords::now;
  EXPECT_TRUE(granted(driver->acquire(requestFor(ninth, 1min))));
}

TEST_P(GetLockOneKey, AGrantOfSeveralTurnsReservesTheirFences) {
  const auto driver = store.open("connections=1");
  const Claimant other{};
  // Alone on its session, and where the session holds another lock: that draws fences elsewhere.
  for (const bool shared : {false, true}) {
    if (shared) {
      ASSERT_TRUE(granted(driver->acquire(requestFor(other, 1min))));
    }
    const Claimant who{};
    AcquireRequest request = requestFor(who, 1min);
    request.localHolders = 8;
    const auto acquire = [&] { return std::get<Granted>(driver->acquire(request)); };
    const Granted first = acquire();
    EXPECT_EQ(first.localHolders, 8U);
    ASSERT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
    EXPECT_EQ(*acquire().fence, *first.fence + 8);
    request.resend = true;
    EXPECT_EQ(acquire().localHolders, 1U);
  }
}

TEST_P(GetLockOneKey, AWaiterWhoseHostVanishedDoesNotKeepTheKeyForItsTtl) {
  const auto far = store.openProxied("ioTimeout=1s");
  Claimant holder;
  ASSERT_TRUE(granted(store.direct->acquire(holder.request())));
  Claimant vanishing;
  vanishing.key = holder.key;
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    return capability<Waitable>(*far)->acquireWaiting(requestFor(vanishing, 1min), 1min, stop.get_token());
  });
  ASSERT_TRUE(waitUntil([&] { return store.server.waitingFor(holder.key).size() == 1; }));
  store.proxy.set({.kind = ProxyFault::Kind::blackhole});
  EXPECT_EQ(store.direct->release(holder.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(waitUntil([&] { return store.isFree(holder.key); })) << "granted in its turn, and then kept";
  stop.request_stop();
  try {
    EXPECT_FALSE(granted(waiting.get()));
  } catch (const OutcomeUnknown&) {  // Its session is lost.
  }
}

const std::string interrupted("\x12\x00\x00\x01\xff\x25\x05#70100interrupt", 22);  // error 1317

TEST_P(GetLockOneKey, AClaimThatIsBrokenOffLeavesNoNameBehind) {
  const auto driver = store.openProxied("fence=off");
  const Claimant before{};
  ASSERT_TRUE(granted(driver->acquire(before.request())));
  const Claimant who{};
  store.proxy.set({.kind = ProxyFault::Kind::replace, .text = interrupted});
  EXPECT_THROW((void)driver->acquire(who.request()), StoreUnavailable);
  EXPECT_EQ(store.proxy.fired(), 1U);
  EXPECT_TRUE(store.isFree(who.key));
}

TEST_P(GetLockOneKey, AnErrorWhileAGrantIsExtendedLeavesNoNameBehind) {
  const auto driver = store.openProxied("fence=off");
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  store.proxy.set({.kind = ProxyFault::Kind::replace, .text = interrupted});
  EXPECT_THROW((void)driver->acquire(who.request(soon(), true)), StoreUnavailable);
  EXPECT_EQ(store.proxy.fired(), 1U);
  EXPECT_TRUE(store.isFree(who.key));
}

TEST_P(GetLockOneKey, ASessionThatIsInUseHoldsUpNoOtherOnesRenewal) {
  const auto uri =
      StoreUri::parse("mysql+getlock" + store.server.uri(store.database).substr(std::string("mysql").size()));
  mysql::SessionOpener opener(mysql::GetLockOptions::fromUri(uri), {}, {});
  mysql::LockSessions sessions(opener, 2);
  const auto busy = std::get<mysql::LockSessions::Use>(
      sessions.forClaim("a", Token::generate(*systemRandom()), 1s, soon()));
  mysql::LockSession* free = nullptr;
  {
    const auto other = std::get<mysql::LockSessions::Use>(
        sessions.forClaim("b", Token::generate(*systemRandom()), 2s, soon()));
    free = &*other;
  }
  std::vector<mysql::LockSession*> wanted{&*busy, free};
  {
    const auto taken = sessions.takeAny(wanted);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->first, free);
  }
  wanted.pop_back();
  EXPECT_FALSE(sessions.takeAny(wanted));
}

// Summer time ends: the hour from two to three comes twice on the server's local clock.
TEST_P(GetLockOneKey, APurgedFenceGoesOnAboveInTheHourThatComesTwice) {
  DatabaseServer server(GetParam(), {}, {{"TZ", "Europe/Berlin"}});
  const std::string database = server.newDatabase();
  constexpr std::int64_t halfPastTwo = 1792888200;  // 2026-10-25 00:30 UTC
  const auto drawAt = [&](std::int64_t time) {
    server.execute("SET GLOBAL init_connect = 'SET timestamp = " + std::to_string(time) + "'");
    mysql::FenceCounter counter(StoreUri::parse(server.uri(database) + "?createTable=true"), {});
    const Fence fence = counter.next(Claimant{.key = "k"}.claim(), false, soon());
    server.execute("DELETE FROM " + database + ".lockkeeper_fences");
    return fence;
  };
  const Fence first = drawAt(halfPastTwo);
  EXPECT_GT(drawAt(halfPastTwo + 40 * 60), first) << "ten past two, for the second time";
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockOneKey, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

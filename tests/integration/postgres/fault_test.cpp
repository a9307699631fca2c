// A server that stands still, requests that come late, replies that are cut, and fork().

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "frozen_server.h"
#include "inherited_driver.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/error.h"
#include "postgres_fixture.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

FreezableStore freezablePostgres(PostgresStore& store) { return freezable(store, "connectTimeout=1s", 1s); }

class FrozenPostgresServer : public ::testing::TestWithParam<Operation> {
 protected:
  PostgresStore store;
};

TEST_P(FrozenPostgresServer, EveryCallReturnsByItsDeadlineAndLeavesNothingBehind) {
  freezeDuring(GetParam(), freezablePostgres(store));
}

INSTANTIATE_TEST_SUITE_P(Operations, FrozenPostgresServer, ::testing::ValuesIn(operations()), operationName);

using PostgresFault = PostgresTest;

TEST_F(PostgresFault, AllThreadsReturnByTheirDeadlines) { freezeUnderLoad(freezablePostgres(store)); }

TEST_F(PostgresFault, AClaimThatWasGivenUpDoesNotKeepTheKey) { freezeBeforeAClaim(freezablePostgres(store)); }

TEST_F(PostgresFault, AHolderIsToldBeforeItsLeaseEnds) { freezeUnderAHolder(freezablePostgres(store)); }

TEST_F(PostgresFault, AClaimThatWasWithdrawnTakesNothing) {
  const auto proxied = store.openProxied();
  const Claimant first;
  ASSERT_TRUE(granted(proxied->acquire(first.request())));
  const Claimant who;
  store.proxy.set({.kind = ProxyFault::Kind::hold, .text = who.key});
  {
    const std::jthread ending([this] {
      if (waitUntil([this] { return store.proxy.fired() > 0; })) store.proxy.endHeldConnections(Ending::rst);
    });
    EXPECT_THROW((void)proxied->acquire(who.request()), OutcomeUnknown);
  }
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  (void)store.proxy.deliverHeld();  // What answers is the end of the session.
  EXPECT_TRUE(store.isFree(who.key));
}

// The server has got the beginning of the request, and waits for the rest of it.
TEST_F(PostgresFault, AClientThatStandsStillInTheMiddleOfARequestKeepsNoRows) {
  const auto proxied = store.openProxied();
  const std::string prefix = Claimant{}.key;
  const auto claimants = [&](std::optional<Share> share) {
    std::vector<Claimant> all(500);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].key = prefix + (share ? "s" : "w") + std::to_string(1000 + i);
      all[i].share = share;
    }
    return all;
  };
  const std::vector<Claimant> readers = claimants(Share{1, 1});
  std::vector<Renewal> renewals;
  for (const Claimant& each : readers) {
    ASSERT_TRUE(granted(proxied->acquire(each.request())));
    renewals.push_back({.claim = each.claim(), .ttl = longTtl});
  }
  const std::vector<Claimant> writers = claimants({});
  std::vector<AcquireRequest> requests;
  for (const Claimant& each : writers) requests.push_back(each.request(in(1s)));

  store.proxy.set({.kind = ProxyFault::Kind::hold, .text = "COMMIT"});
  EXPECT_THROW((void)capability<Batchable>(*proxied)->acquireInOrder(requests), OutcomeUnknown);
  EXPECT_GT(store.proxy.fired(), 0U);
  EXPECT_TRUE(granted(store.direct->acquire(Claimant{.key = writers.front().key}.request())));

  store.proxy.set({.kind = ProxyFault::Kind::hold, .text = "COMMIT"});
  proxied->renew(renewals, in(1s));
  EXPECT_GT(store.proxy.fired(), 0U);
  EXPECT_EQ(store.direct->release(readers.front().claim(), soon()), ReleaseOutcome::released);
}

// Wherever the reply is cut, the claim that is sent again gets what was granted.
TEST_F(PostgresFault, AClaimWhoseReplyIsCutIsGrantedOnce) {
  for (std::size_t bytes = 0, whole = 1; bytes < whole; bytes += 7) {
    const auto proxied = store.openProxied();
    const Claimant first;
    ASSERT_TRUE(granted(proxied->acquire(first.request())));  // Its session knows the statement now.
    const Claimant who;
    store.proxy.set({});
    ASSERT_TRUE(granted(proxied->acquire(Claimant{}.request())));
    whole = store.proxy.replyBytes();
    store.proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
    EXPECT_THROW((void)proxied->acquire(who.request()), OutcomeUnknown) << bytes;
    store.proxy.passThrough();
    const auto holder = store.direct->holder(who.key, soon());
    const AcquireResult again = proxied->acquire(who.request(soon(), true));
    ASSERT_TRUE(granted(again)) << bytes;
    if (holder) {
      EXPECT_EQ(std::get<Granted>(again).fence, holder->fence) << bytes;
    }
  }
}

TEST_F(PostgresFault, AServerThatSaysNothingOrDripsEndsALogInByItsDeadline) {
  const auto proxied = store.openProxied("connectTimeout=500ms");
  for (const ProxyFault& fault : {ProxyFault{.kind = ProxyFault::Kind::blackhole},
                                  ProxyFault{.kind = ProxyFault::Kind::drip, .pause = 50ms}}) {
    store.proxy.set(fault);
    const Instant start = now();
    EXPECT_THROW((void)proxied->acquire(Claimant{}.request(in(1s))), StoreUnavailable);
    EXPECT_LT(now() - start, 1s + schedulingSlack);
    store.proxy.passThrough();
    EXPECT_TRUE(granted(proxied->acquire(Claimant{}.request())));
    store.server.endSessions();
  }
}

TEST_F(PostgresFault, AnInheritedDriverTouchesNoSocket) {
  inherit(store.openProxied());
  EXPECT_EQ(store.proxy.connections(), 1U);
}

TEST_F(PostgresFault, AChildMayMakeItsOwn) {
  makeOneInTheChild([&] { return store.open(); });
}

}  // namespace
}  // namespace lockkeeper::test

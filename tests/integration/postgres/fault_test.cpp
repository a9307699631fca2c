// A server that stands still, requests that come late, replies that are cut, and fork().

#include <memory>
#include <string>
#include <thread>

#include "frozen_server.h"
#include "inherited_driver.h"
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

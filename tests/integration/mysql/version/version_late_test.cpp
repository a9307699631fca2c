// Requests that the server gets when their caller has given them up long since.

#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lockkeeper/base/hex.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class VersionLate : public VersionTest {
 protected:
  /// Makes a request that contains `text` late: its caller loses the connection as soon as it is sent.
  template <class Call>
  auto late(const std::string& text, Call call) {
    store.proxy.set({.kind = ProxyFault::Kind::hold, .text = text});
    const std::jthread ending([this] {
      if (waitUntil([this] { return store.proxy.fired() > 0; })) store.proxy.endHeldConnections(Ending::rst);
    });
    return call();
  }
  void expectLateClaim(const AcquireRequest& request, const std::string& text) {
    late(text, [&] { EXPECT_THROW((void)proxied->acquire(request), OutcomeUnknown); });
  }
  /// Opens a session, and makes its statements known to the server.
  void prepare(const std::optional<Share>& share = {}) const {
    Claimant first;
    first.share = share;
    ASSERT_TRUE(granted(proxied->acquire(first.request())));
    ASSERT_EQ(proxied->release(first.claim(), soon()), ReleaseOutcome::released);
  }

  const std::shared_ptr<LockDriver> proxied = store.openProxied();
};

TEST_P(VersionLate, AClaimThatWasWithdrawnTakesNothing) {
  prepare();
  const Claimant who;
  expectLateClaim(who.request(), who.key);
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_FALSE(store.proxy.deliverHeld());
  EXPECT_TRUE(store.isFree(who.key));
}

TEST_P(VersionLate, AClaimOfAShareThatWasWithdrawnTakesNothing) {
  prepare(Share{1, 2});
  Claimant other;
  other.share = Share{1, 2};
  Claimant who;
  who.share = Share{1, 2};
  who.key = other.key;
  ASSERT_TRUE(granted(store.direct->acquire(other.request())));
  expectLateClaim(who.request(), toHex(who.key));
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_FALSE(store.proxy.deliverHeld());
  EXPECT_EQ(capability<Permits>(*store.direct)->shareHolders(who.key, soon()).size(), 1U);
}

TEST_P(VersionLate, ClaimsOfSeveralKeysThatWereWithdrawnTakeNothing) {
  prepare();
  std::vector<Claimant> claimants(2);
  std::vector<AcquireRequest> requests;
  claimants[0].key = "a" + claimants[0].key;
  claimants[1].key = "b" + claimants[1].key;
  for (const Claimant& each : claimants) requests.push_back(each.request());
  late(toHex(claimants[0].key), [&] {
    EXPECT_THROW((void)capability<Batchable>(*proxied)->acquireInOrder(requests), OutcomeUnknown);
  });
  for (const Claimant& each : claimants)
    EXPECT_EQ(proxied->release(each.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_FALSE(store.proxy.deliverHeld());
  for (const Claimant& each : claimants) EXPECT_TRUE(store.isFree(each.key));
}

TEST_P(VersionLate, AClaimOfAWaiterThatWasWithdrawnTakesNothing) {
  prepare();
  const Claimant who;
  Claimant holds;
  holds.key = who.key;
  ASSERT_TRUE(granted(store.direct->acquire(holds.request())));
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    return capability<Waitable>(*proxied)->acquireWaiting(who.request(), 1min, stop.get_token());
  });
  // Its claim has written the mark of a waiter.
  ASSERT_TRUE(waitUntil([&] {
    return store.ask("SELECT owner FROM lockkeeper_locks WHERE lock_key = '" + who.key + "'").find('@') !=
           std::string::npos;
  }));
  late(who.key, [&] { EXPECT_THROW((void)waiting.get(), OutcomeUnknown); });
  ASSERT_EQ(store.direct->release(holds.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_FALSE(store.proxy.deliverHeld());
  EXPECT_TRUE(store.isFree(who.key));
}

TEST_P(VersionLate, ARenewalDoesNotShortenTheLeaseThatANewerOneHasGiven) {
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared ? "a share" : "the whole key");
    const std::optional<Share> share = shared ? std::optional(Share{1, 2}) : std::nullopt;
    prepare(share);
    Claimant who;
    who.share = share;
    ASSERT_TRUE(granted(proxied->acquire(who.request())));
    Renewal older{.claim = who.claim(), .ttl = 1min};
    late(toHex(who.key), [&] { proxied->renew({&older, 1}, soon()); });
    EXPECT_NE(older.outcome, RenewOutcome::renewed);
    Renewal newer{.claim = who.claim(), .ttl = longTtl};
    proxied->renew({&newer, 1}, soon());
    ASSERT_EQ(newer.outcome, RenewOutcome::renewed);
    (void)store.proxy.deliverHeld();
    const auto held = store.direct->holder(who.key, soon());
    ASSERT_TRUE(held);
    EXPECT_GT(*held->remaining, 2min);
    EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::released);
  }
}

TEST_P(VersionLate, AClaimThatIsSentAgainDoesNotShortenItsLease) {
  const Claimant who;
  ASSERT_TRUE(granted(store.direct->acquire(who.request())));
  AcquireRequest again = who.request(soon(), true);
  again.ttl = 1min;
  ASSERT_TRUE(granted(store.direct->acquire(again)));
  EXPECT_GT(*store.direct->holder(who.key, soon())->remaining, 2min);
}

TEST_P(VersionLate, AGrantByALatePacketHasTheTurnsThatItsRowHas) {
  prepare();
  const Claimant who;
  AcquireRequest request = who.request();
  expectLateClaim(request, who.key);
  EXPECT_TRUE(store.proxy.deliverHeld()) << "the server has read it before it was asked again";
  const auto held = store.direct->holder(who.key, soon());
  ASSERT_TRUE(held);
  request.localHolders = 64;
  const AcquireResult found = proxied->acquire(request);
  ASSERT_TRUE(granted(found));
  EXPECT_EQ(std::get<Granted>(found).localHolders, 1U);
  EXPECT_EQ(std::get<Granted>(found).fence, held->fence);
  ASSERT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::released);
  Claimant next;
  next.key = who.key;
  const AcquireResult after = store.direct->acquire(next.request());
  ASSERT_TRUE(granted(after));
  EXPECT_EQ(*std::get<Granted>(after).fence, *held->fence + 1);
}

// The ids of sessions begin anew when a server restarts.
TEST_P(VersionLate, OnlyTheSessionThatWasGivenUpIsEnded) {
  prepare();
  const Claimant who;
  expectLateClaim(who.request(), who.key);
  const auto other = store.openProxied("connections=1");
  const Claimant holds;
  ASSERT_TRUE(granted(other->acquire(holds.request())));
  const std::size_t connections = store.proxy.connections();
  EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_EQ(other->release(holds.claim(), soon()), ReleaseOutcome::released);
  EXPECT_LE(store.proxy.connections(), connections + 1);
}

TEST_P(VersionLate, ASessionThatWasGivenUpIsKilledOnceAndLookedForWithPauses) {
  prepare();
  // The server does not look whether it is to end a session while it computes the value of a column.
  constexpr int parts = 40;
  const Claimant who;
  std::string slow;
  for (int part = 0; part < parts; ++part) {
    slow += (part > 0 ? "+" : "") + std::string("LENGTH(SHA2(REPEAT(lock_key,") +
            std::to_string(400'000 - part) + "),512))";
  }
  store.server.execute("ALTER TABLE " + store.database +
                       ".lockkeeper_locks ADD COLUMN slow BIGINT AS (IF(lock_key='" + who.key + "'," + slow +
                       ",0)) STORED");
  EXPECT_THROW((void)proxied->acquire(who.request(in(300ms))), OutcomeUnknown);
  const std::int64_t kills = store.status("Com_kill");
  const std::int64_t looks = store.status("Com_select");
  const Instant began = now();
  // The claim may have been carried out before the server noticed that it was to end it.
  (void)proxied->release(who.claim(), in(1min));
  const auto lasted = std::chrono::ceil<std::chrono::milliseconds>(now() - began);
  EXPECT_GE(lasted, 50ms) << "it has ended at once, so that nothing was shown";
  EXPECT_EQ(store.status("Com_kill") - kills, 1);
  // And those of a new session.
  EXPECT_LE(store.status("Com_select") - looks, lasted / 10ms + 10);
  EXPECT_TRUE(store.isFree(who.key));
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionLate, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

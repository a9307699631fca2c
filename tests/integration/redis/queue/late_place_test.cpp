// Claims that get their place in the queue when their caller has given them up.

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "lockkeeper/driver/queue.h"
#include "queue/queue_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class LatePlace : public RedisQueueTest {
 protected:
  static AcquireResult waitFor(LockDriver& driver, const AcquireRequest& request) {
    return capability<Waitable>(driver)->acquireWaiting(request, 30s, {});
  }
  Fence take(LockDriver& driver, const Claimant& claimant) const {
    const AcquireResult result = driver.acquire(claimant.request());
    EXPECT_TRUE(granted(result));
    return granted(result) ? std::get<Granted>(result).fence.value_or(0) : 0;
  }
  void leave(LockDriver& driver, const Claimant& claimant) const {
    EXPECT_EQ(driver.release(claimant.claim(), soon()), ReleaseOutcome::released);
  }
  /// The server does not get this look at the queue. Its caller loses the connection.
  void waitLate(const AcquireRequest& request) {
    proxy.set({.kind = ProxyFault::Kind::hold, .text = "\r\nwait\r\n"});
    const std::jthread ending([this] {
      if (waitUntil([this] { return proxy.fired() > 0; })) proxy.endHeldConnections(Ending::rst);
    });
    EXPECT_THROW((void)waitFor(*proxied, request), OutcomeUnknown);
  }
  /// Who waits for the key that the late claim may have, or get, has it in time, and a fence above `last`.
  void expectTheNextOneGetsIn(Fence last, std::chrono::milliseconds bound) const {
    const Claimant next{.key = "k"};
    const Instant began = now();
    const AcquireResult result = waitFor(*direct, next.request());
    ASSERT_TRUE(granted(result));
    EXPECT_LT(since(began), bound + schedulingSlack);
    EXPECT_GT(std::get<Granted>(result).fence, last);
    leave(*direct, next);
  }

  const std::shared_ptr<LockDriver> proxied = [this] {
    auto made = openProxied();
    // Makes the scripts known.
    const Claimant first{};
    EXPECT_TRUE(granted(waitFor(*made, first.request())));
    leave(*made, first);
    return made;
  }();
  const Claimant holder{.key = "k"};
  const Claimant who{.key = "k"};
  const Claimant other{.key = "k"};
};

TEST_F(LatePlace, IsTheOneThatTheClaimHasWhenItIsSentAgain) {
  const Fence first = take(*direct, holder);
  waitLate(who.request());
  EXPECT_TRUE(proxy.deliverHeld());
  EXPECT_EQ(queued(), 1U);
  auto waiting = std::async(std::launch::async, [&] { return waitFor(*proxied, who.request(soon(), true)); });
  leave(*direct, holder);
  const AcquireResult result = waiting.get();
  ASSERT_TRUE(granted(result));
  const Granted& grant = std::get<Granted>(result);
  EXPECT_EQ(grant.localHolders, 1U);
  EXPECT_EQ(grant.fence, counter());
  EXPECT_GT(grant.fence, first);
  EXPECT_FALSE(granted(direct->acquire(other.request())));
  leave(*proxied, who);
  EXPECT_GT(take(*direct, other), grant.fence);
}

TEST_F(LatePlace, OfAGrantThatHasEndedTakesTheKeyFromNobody) {
  const Fence first = take(*direct, holder);
  AcquireRequest request = who.request();
  request.ttl = 1s;
  waitLate(request);
  leave(*direct, holder);
  request.resend = true;
  ASSERT_TRUE(granted(waitFor(*proxied, request)));
  leave(*proxied, who);
  const Fence second = take(*direct, other);
  EXPECT_GT(second, first);
  EXPECT_TRUE(proxy.deliverHeld());
  Renewal renewal{.claim = other.claim(), .ttl = longTtl};
  direct->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
  EXPECT_EQ(value().find(who.token.hex()), std::string::npos);
  leave(*direct, other);
  expectTheNextOneGetsIn(second, 1s);
}

TEST_F(LatePlace, ThatWasWithdrawnHasTheKeyForItsTtlAtMost) {
  for (const bool isHeld : {true, false}) {
    SCOPED_TRACE(isHeld ? "the key is held" : "the key is free");
    const Claimant withdrawn{.key = "k"};
    const Fence first = take(*direct, holder);
    AcquireRequest request = withdrawn.request();
    request.ttl = 1s;
    waitLate(request);
    EXPECT_EQ(proxied->release(request.claim, soon()), ReleaseOutcome::notOwner);
    if (!isHeld) leave(*direct, holder);
    EXPECT_TRUE(proxy.deliverHeld());
    if (isHeld) leave(*direct, holder);
    expectTheNextOneGetsIn(first, 1s);
  }
}

}  // namespace
}  // namespace lockkeeper::test

#pragma once

// Claims that a server gets after their caller has given them up, on stores where such a claim may take the
// key.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "claimant.h"
#include "fault_proxy.h"
#include "lockkeeper/error.h"
#include "succeeds_in_the_end.h"
#include "wait_until.h"

namespace lockkeeper::test {

/// A store, two clients of it, and a proxy between the first one and each of the store's servers.
struct LateStore {
  std::shared_ptr<LockDriver> proxied{};
  std::shared_ptr<LockDriver> direct{};
  std::vector<FaultProxy*> proxies{};
  std::shared_ptr<void> servers{};  ///< Lives as long as this.

  /// The servers do not get this claim before arrive(). Its caller loses the connections to them.
  void sendLate(const AcquireRequest& request) const {
    for (FaultProxy* const each : proxies)
      each->set({.kind = ProxyFault::Kind::hold, .text = std::string(request.claim.key)});
    const std::jthread ending([this] {
      for (FaultProxy* const each : proxies) {
        if (waitUntil([&] { return each->fired() > 0; })) each->endHeldConnections(Ending::rst);
      }
    });
    EXPECT_THROW((void)proxied->acquire(request), OutcomeUnknown);
  }
  void arrive() const {
    for (FaultProxy* const each : proxies) EXPECT_TRUE(each->deliverHeld()) << "a server has read the claim";
  }
};

struct LateStoreCase {
  const char* name;
  /// Whose client is connected to all servers, and has made its scripts known to them.
  LateStore (*open)();
  bool hasFences;
  /// Whether the key is taken by a claim that arrives before anything else has happened to it. Otherwise the
  /// server or the driver takes that back, sooner or later.
  bool keepsLateClaims;
};

class LateClaim : public ::testing::TestWithParam<LateStoreCase> {
 protected:
  static constexpr std::uint32_t severalTurns = 64;

  AcquireRequest requestOf(const Claimant& who, bool resend = false) const {
    AcquireRequest request = who.request(soon(), resend);
    request.localHolders = severalTurns;
    return request;
  }

  /// Whether the claim is granted. Then nobody else may hold the key, and each fence is above all before.
  bool takes(LockDriver& driver, const Claimant& claimant, bool resend = false) {
    const AcquireResult result = driver.acquire(requestOf(claimant, resend));
    const auto* const grant = std::get_if<Granted>(&result);
    if (grant == nullptr) return false;
    EXPECT_FALSE(holding_) << "two holders";
    holding_ = true;
    turns_ = grant->localHolders;
    EXPECT_EQ(grant->fence.has_value(), GetParam().hasFences);
    if (grant->fence) {
      EXPECT_GT(*grant->fence, lastFence_);
      lastFence_ = *grant->fence + turns_ - 1;
    }
    expectFenceOfHolder();
    return true;
  }
  /// The store shows the last fence that was granted, so that nobody has got one since.
  void expectFenceOfHolder() const {
    if (!GetParam().hasFences) return;
    const auto holder = store.direct->holder(who.key, soon());
    ASSERT_TRUE(holder);
    EXPECT_EQ(holder->fence.value_or(0), lastFence_);
  }
  /// As soon as the driver has its connections again.
  bool takesInTheEnd(LockDriver& driver, const Claimant& claimant, bool resend = false) {
    return waitUntil([&] {
      try {
        return takes(driver, claimant, resend);
      } catch (const Error&) {
        return false;
      }
    });
  }
  void leaves(LockDriver& driver, const Claimant& claimant) {
    EXPECT_EQ(driver.release(claimant.claim(), soon()), ReleaseOutcome::released);
    holding_ = false;
  }
  bool isHeldBy(LockDriver& driver, const Claimant& claimant) const {
    Renewal renewal{.claim = claimant.claim(), .ttl = longTtl};
    driver.renew({&renewal, 1}, soon());
    return renewal.outcome == RenewOutcome::renewed;
  }
  /// How many turns the latest grant has.
  std::uint32_t turns() const { return turns_; }

  const LateStore store = GetParam().open();
  const Claimant who{};
  const Claimant other{.key = who.key};

 private:
  bool holding_ = false;
  std::uint32_t turns_ = 0;
  Fence lastFence_ = 0;
};

TEST_P(LateClaim, ThatIsFoundByItsResendHasOneTurn) {
  store.sendLate(requestOf(who));
  store.arrive();
  if (GetParam().keepsLateClaims) {
    EXPECT_FALSE(takes(*store.direct, other)) << "it has arrived";
  } else if (takes(*store.direct, other)) {
    EXPECT_FALSE(isHeldBy(*store.proxied, who));
    leaves(*store.direct, other);
  }
  ASSERT_TRUE(takesInTheEnd(*store.proxied, who, true));
  EXPECT_EQ(turns(), 1U);
  EXPECT_FALSE(takes(*store.direct, other));
  leaves(*store.proxied, who);
  EXPECT_TRUE(takes(*store.direct, other));
}

TEST_P(LateClaim, ThatArrivesAfterItsResendChangesNothing) {
  store.sendLate(requestOf(who));
  ASSERT_TRUE(takesInTheEnd(*store.proxied, who, true));
  store.arrive();
  expectFenceOfHolder();
  EXPECT_TRUE(isHeldBy(*store.proxied, who));
  EXPECT_FALSE(takes(*store.direct, other));
  leaves(*store.proxied, who);
  EXPECT_TRUE(takes(*store.direct, other));
}

TEST_P(LateClaim, ThatArrivesWhileSomebodyElseHoldsTheKeyTakesNothing) {
  store.sendLate(requestOf(who));
  ASSERT_TRUE(takesInTheEnd(*store.proxied, who, true));
  leaves(*store.proxied, who);
  ASSERT_TRUE(takes(*store.direct, other));
  store.arrive();
  expectFenceOfHolder();
  EXPECT_TRUE(isHeldBy(*store.direct, other));
  EXPECT_FALSE(isHeldBy(*store.proxied, who));
  leaves(*store.direct, other);
  EXPECT_TRUE(takes(*store.direct, Claimant{.key = who.key})) << "it was not left to the late claim";
}

TEST_P(LateClaim, ThatArrivesAfterItWasWithdrawnKeepsTheKeyForItsTtlAtMost) {
  AcquireRequest request = requestOf(who);
  request.ttl = std::chrono::seconds{1};
  constexpr std::chrono::milliseconds legacyRounding{2500};
  store.sendLate(request);
  succeedsInTheEnd([&] { EXPECT_NE(store.proxied->release(who.claim(), soon()), ReleaseOutcome::released); });
  ASSERT_TRUE(takes(*store.direct, other));
  leaves(*store.direct, other);
  const Instant arrived = now();
  store.arrive();
  EXPECT_TRUE(takesInTheEnd(*store.direct, other));
  EXPECT_LT(now() - arrived, request.ttl + legacyRounding + schedulingSlack);
}

inline std::string lateStoreName(const ::testing::TestParamInfo<LateStoreCase>& info) {
  return info.param.name;
}

}  // namespace lockkeeper::test

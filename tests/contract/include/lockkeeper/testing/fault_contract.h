#pragma once

/// @file
/// What a driver must keep when the connection to its server breaks, as a GoogleTest suite. The server
/// listens on 127.0.0.1, and a FaultProxy is between it and the driver. In one source file of a test program:
///
///     #include <lockkeeper/testing/fault_contract.h>
///     using lockkeeper::testing::FaultContract;
///     INSTANTIATE_TEST_SUITE_P(MyStore, FaultContract,
///                              ::testing::Values(lockkeeper::testing::FaultFactory{
///                                  .name = "mine", .port = serversPort, .open = openMyDriver}),
///                              lockkeeper::testing::faultFactoryName);

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/error.h"
#include "lockkeeper/testing/contract/driver_fixture.h"
#include "lockkeeper/testing/fault_proxy.h"

namespace lockkeeper::testing {

/// A store whose server the suite reaches through a proxy.
struct FaultFactory {
  /// [A-Za-z0-9_]: part of the tests' names.
  std::string name;

  /// The server's port on 127.0.0.1. Called while tests run: start the server in it, once for all tests.
  std::function<std::uint16_t()> port;

  /// A client that connects to this port of 127.0.0.1: the server's or a proxy's.
  std::function<std::shared_ptr<LockDriver>(std::uint16_t port)> open;

  /// How long a call may take beyond its deadline: the driver's I/O timeout.
  std::chrono::milliseconds ioTimeout{3000};

  /// A lease that ends while a test waits for it, and how much longer the store may keep the key.
  std::chrono::milliseconds shortTtl{1000};
  std::chrono::milliseconds expirySlack{0};

  /// A text that the request to claim a key contains.
  std::function<std::string(const std::string& key)> textOfClaim = [](const std::string& key) { return key; };
};

/// For GoogleTest's messages: the name.
inline void PrintTo(const FaultFactory& factory, std::ostream* out) { *out << factory.name; }

/// The last argument of INSTANTIATE_TEST_SUITE_P: names a test after its store.
inline std::string faultFactoryName(const ::testing::TestParamInfo<FaultFactory>& info) {
  return info.param.name;
}

/// The suite. Each test has a key, a proxy, a client behind it and one that reaches the server directly.
class FaultContract : public ::testing::TestWithParam<FaultFactory> {
 protected:
  static constexpr std::chrono::milliseconds longTtl = std::chrono::minutes{10};
  /// How much later than promised a call may return on a machine that is busy.
  static constexpr std::chrono::seconds schedulingSlack{5};
  /// The most places at which a reply is cut.
  static constexpr std::size_t mostCuts = 24;

  /// The present moment, one after it, and one that is late enough for a call.
  /// @{
  static Instant now() { return systemClock()->now(); }
  static Instant in(std::chrono::milliseconds length) { return now() + length; }
  static Instant soon() { return in(std::chrono::seconds{10}); }
  /// @}
  /// A key that no other test uses.
  static std::string uniqueKey() { return "fault-" + Token::generate(*systemRandom()).hex(); }

  /// Makes its connection before anything is spoiled, and whatever else a driver does only once.
  FaultContract() {
    const Claimant first{uniqueKey()};
    EXPECT_TRUE(takes(*proxied, first));
    EXPECT_EQ(proxied->release(first.claim(), soon()), ReleaseOutcome::released);
  }

  /// One attempt to take the lock: its grant, or nothing if it is busy.
  static std::optional<Granted> grantOf(LockDriver& driver, const Claimant& who, bool resend = false) {
    const AcquireResult result =
        driver.acquire({.claim = who.claim(), .ttl = longTtl, .deadline = soon(), .resend = resend});
    const auto* const granted = std::get_if<Granted>(&result);
    return granted == nullptr ? std::nullopt : std::optional(*granted);
  }
  /// Whether one attempt takes the lock.
  static bool takes(LockDriver& driver, const Claimant& who) { return grantOf(driver, who).has_value(); }
  /// The outcome of one renewal.
  static RenewOutcome renewed(LockDriver& driver, const Claimant& who, Instant deadline = soon()) {
    Renewal renewal{.claim = who.claim(), .ttl = longTtl};
    driver.renew({&renewal, 1}, deadline);
    return renewal.outcome;
  }

  /// Calls until it returns true, for drivers that need a moment to connect again. False after ten seconds.
  static bool inTheEnd(const std::function<bool()>& call) {
    for (const Instant end = soon();; std::this_thread::sleep_for(std::chrono::milliseconds{10})) {
      try {
        if (call()) return true;
      } catch (const Error&) {
        if (now() >= end) throw;
      }
      if (now() >= end) return false;
    }
  }

  /// The error of a call that may not return; empty, and a failure, if it does.
  static std::optional<ErrorCode> errorOf(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "the call took for an answer what was none";
    return std::nullopt;
  }
  /// Whether this error says that the call may have had its effect.
  static bool mayBeApplied(std::optional<ErrorCode> code) {
    return code == ErrorCode::outcomeUnknown || code == ErrorCode::protocol;
  }

  /// The server does not get this claim before proxy.deliverHeld(), and its caller loses the connection.
  void sendLate(const Claimant& who, std::chrono::milliseconds ttl) {
    proxy.set({.kind = ProxyFault::Kind::hold, .text = GetParam().textOfClaim(who.key)});
    const std::jthread ending([this] {
      if (inTheEnd([this] { return proxy.fired() > 0; })) proxy.endHeldConnections(Ending::rst);
    });
    EXPECT_TRUE(mayBeApplied(errorOf([&] {
      (void)proxied->acquire({.claim = who.claim(), .ttl = ttl, .deadline = soon()});
    }))) << "the request may still arrive";
  }
  /// As core does in the end with a claim whose outcome it has not seen.
  void withdraw(const Claimant& who) {
    EXPECT_TRUE(inTheEnd([&] {
      EXPECT_NE(proxied->release(who.claim(), soon()), ReleaseOutcome::released);
      return true;
    }));
  }

  FaultProxy proxy{GetParam().port()};
  const std::shared_ptr<LockDriver> direct = GetParam().open(GetParam().port());
  const std::shared_ptr<LockDriver> proxied = GetParam().open(proxy.port());
  const Claimant who{uniqueKey()};
  const Claimant other{who.key, "contract:2"};
};

TEST_P(FaultContract, AReplyToAClaimThatIsCutIsNoAnswerAndAskingAgainGivesTheSameGrant) {
  proxy.set({});
  ASSERT_TRUE(takes(*proxied, Claimant{uniqueKey()}));
  const std::size_t whole = proxy.replyBytes();
  for (std::size_t bytes = 0; bytes < whole; bytes += 1 + whole / mostCuts) {
    SCOPED_TRACE(bytes);
    const Claimant cut{uniqueKey()};
    proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
    const auto error = errorOf([&] { (void)grantOf(*proxied, cut); });
    EXPECT_GT(proxy.fired(), 0U);
    proxy.passThrough();
    const auto holder = direct->holder(cut.key, soon());
    EXPECT_TRUE(mayBeApplied(error) || !holder) << "it says that nothing was applied, and the key is held";
    std::optional<Granted> again;
    ASSERT_TRUE(inTheEnd([&] { return (again = grantOf(*proxied, cut, true)).has_value(); }));
    if (holder) {
      EXPECT_EQ(again->fence, holder->fence);
    }
    EXPECT_EQ(proxied->release(cut.claim(), soon()), ReleaseOutcome::released);
  }
}

TEST_P(FaultContract, AClaimWhoseReplyDoesNotComeMayHaveBeenGranted) {
  proxy.set({.kind = ProxyFault::Kind::dropReplies});
  const auto error = errorOf([&] {
    (void)proxied->acquire({.claim = who.claim(), .ttl = longTtl, .deadline = in(std::chrono::seconds{1})});
  });
  EXPECT_GT(proxy.fired(), 0U);
  proxy.passThrough();
  EXPECT_TRUE(mayBeApplied(error) || !direct->holder(who.key, soon()))
      << "it says that nothing was applied, and the key is held";
}

TEST_P(FaultContract, ARenewalWhoseReplyIsLostIsALossOnlyIfTheKeyIsFree) {
  ASSERT_TRUE(takes(*proxied, who));
  proxy.cutReplies(0, Ending::rst);
  const RenewOutcome outcome = renewed(*proxied, who);
  EXPECT_GT(proxy.fired(), 0U);
  EXPECT_NE(outcome, RenewOutcome::renewed);
  proxy.passThrough();
  const bool isLost = outcome == RenewOutcome::notOwner || outcome == RenewOutcome::ownerUnknown;
  EXPECT_EQ(takes(*direct, other), isLost);
  if (!isLost) {
    EXPECT_TRUE(inTheEnd([&] { return renewed(*proxied, who) == RenewOutcome::renewed; }));
  }
}

TEST_P(FaultContract, AReleaseWhoseReplyIsLostIsInDoubtAndTheNextOneLeavesTheKeyFree) {
  ASSERT_TRUE(takes(*proxied, who));
  proxy.cutReplies(0, Ending::rst);
  const auto error = errorOf([&] { (void)proxied->release(who.claim(), soon()); });
  EXPECT_GT(proxy.fired(), 0U);
  proxy.passThrough();
  EXPECT_TRUE(mayBeApplied(error) || direct->holder(who.key, soon()))
      << "it says that nothing was applied, and the key is free";
  EXPECT_TRUE(inTheEnd([&] {
    (void)proxied->release(who.claim(), soon());
    return true;
  }));
  EXPECT_TRUE(takes(*direct, other));
}

TEST_P(FaultContract, CallsToASilentServerEndByTheirDeadlineAndCostNoLock) {
  constexpr std::chrono::milliseconds time{300};
  ASSERT_TRUE(takes(*proxied, who));
  proxy.set({.kind = ProxyFault::Kind::blackhole});
  const auto expectInTime = [&](const std::function<void()>& call) {
    const Instant start = now();
    call();
    EXPECT_LT(now() - start, time + GetParam().ioTimeout + schedulingSlack);
  };
  expectInTime([&] {
    const RenewOutcome outcome = renewed(*proxied, who, in(time));
    EXPECT_TRUE(outcome == RenewOutcome::unavailable || outcome == RenewOutcome::unknown);
  });
  expectInTime([&] {
    const Claimant free{uniqueKey()};
    errorOf([&] { (void)proxied->acquire({.claim = free.claim(), .ttl = longTtl, .deadline = in(time)}); });
  });
  expectInTime([&] { errorOf([&] { (void)proxied->holder(who.key, in(time)); }); });
  expectInTime([&] { errorOf([&] { (void)proxied->release(other.claim(), in(time)); }); });
  proxy.passThrough();
  EXPECT_TRUE(inTheEnd([&] { return renewed(*proxied, who) == RenewOutcome::renewed; }));
}

TEST_P(FaultContract, AClaimThatArrivesAfterItWasWithdrawnKeepsTheKeyForItsTtlAtMost) {
  sendLate(who, GetParam().shortTtl);
  withdraw(who);
  ASSERT_TRUE(takes(*direct, other));
  ASSERT_EQ(direct->release(other.claim(), soon()), ReleaseOutcome::released);
  const Instant arrived = now();
  (void)proxy.deliverHeld();
  EXPECT_TRUE(inTheEnd([&] { return takes(*direct, other); }));
  EXPECT_LT(now() - arrived, GetParam().shortTtl + GetParam().expirySlack + schedulingSlack);
}

TEST_P(FaultContract, AClaimThatArrivesAfterItWasWithdrawnTakesNothingFromTheNextHolder) {
  sendLate(who, longTtl);
  withdraw(who);
  ASSERT_TRUE(takes(*direct, other));
  (void)proxy.deliverHeld();
  EXPECT_EQ(renewed(*direct, other), RenewOutcome::renewed);
  EXPECT_FALSE(takes(*direct, Claimant{who.key}));
  EXPECT_TRUE(inTheEnd([&] { return !takes(*proxied, who); }));
}

}  // namespace lockkeeper::testing

#include <optional>

#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds shortTtl{5000};
constexpr std::chrono::milliseconds shortPatience{250};  // as the ttl makes it
constexpr std::chrono::milliseconds otherTtl{10min};
constexpr std::chrono::milliseconds otherPatience{30s};

/// A short and a long lease that are renewed together, by nodes whose time depends on the ttl.
class MixedRenewals : public RedlockTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(allAgree(*driver));
    for (const Claimant* who : {&brief, &lasting}) {
      ASSERT_TRUE(granted(driver->acquire(request(*who, otherTtl))));
      ASSERT_TRUE(waitUntil([&] { return votes(who->key) == nodeCount; }));
    }
  }

  std::vector<Renewal> renew() {
    std::vector<Renewal> both(2);
    both[0] = {.claim = brief.claim(), .ttl = shortTtl};
    both[1] = {.claim = lasting.claim(), .ttl = otherTtl};
    both[0].told = [&](const Renewal& renewal) {
      EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
      toldAt = now();
    };
    driver->renew(both, in(1min));
    return both;
  }

  const std::shared_ptr<LockDriver> driver = open("restartGuard=off&connectTimeout=500ms&ioTimeout=1m");
  const Claimant brief{};
  const Claimant lasting{};
  std::optional<Instant> toldAt;
};

TEST_F(MixedRenewals, NodesThatAreSlowerThanTheShortLeaseIsPatientRenewBoth) {
  for (const auto& proxy : proxies) proxy->set({.kind = ProxyFault::Kind::delay, .pause = 2 * shortPatience});
  for (const Renewal& each : renew()) EXPECT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
  for (const auto& proxy : proxies) EXPECT_GE(proxy->fired(), 1U);
}

TEST_F(MixedRenewals, ANodeThatStandsStillDoesNotHoldUpTheShortLease) {
  proxies[0]->set({.kind = ProxyFault::Kind::blackhole});
  const Instant start = now();
  for (const Renewal& each : renew()) EXPECT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
  EXPECT_LT(now(), start + otherPatience / 2);
  EXPECT_GE(proxies[0]->fired(), 1U);
}

TEST_F(MixedRenewals, ANodeThatStandsStillBesideSlowOnesDoesNotHoldUpTheShortLease) {
  proxies[0]->set({.kind = ProxyFault::Kind::blackhole});
  for (const std::size_t node : {1U, 2U, 3U})
    proxies[node]->set({.kind = ProxyFault::Kind::delay, .pause = 2 * shortPatience});
  const Instant start = now();
  for (const Renewal& each : renew()) EXPECT_EQ(each.outcome, RenewOutcome::renewed) << each.cause;
  EXPECT_LT(now(), start + otherPatience / 2);
}

TEST_F(MixedRenewals, AShortLeaseIsToldBeforeALongOneIsAskedForAgain) {
  // Of the long lease two nodes know, two have forgotten it, and the fifth does not tell.
  for (const std::size_t node : {1U, 2U}) ASSERT_EQ(servers[node].command({"DEL", lasting.key}), "1");
  proxies[0]->set({.kind = ProxyFault::Kind::blackhole});
  std::vector<Renewal> both;
  ASSERT_TRUE(waitUntil([&] {
    both = renew();
    return toldAt.has_value();
  }));
  EXPECT_EQ(both[1].outcome, RenewOutcome::unknown) << both[1].cause;
  EXPECT_LE(*toldAt, both[1].leasedFrom) << "that is when it was asked for again";
}

}  // namespace
}  // namespace lockkeeper::test

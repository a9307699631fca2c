#include "node_fault.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t broken = 3;

/// Three of the five nodes are of no use.
class BrokenMajority : public RedlockTest, public ::testing::WithParamInterface<NodeFault> {
 protected:
  void strike() {
    for (std::size_t node = 0; node < broken; ++node) GetParam().strike(servers[node], *proxies[node]);
  }
  void heal() {
    for (std::size_t node = 0; node < broken; ++node) GetParam().heal(servers[node], *proxies[node]);
  }

  /// Returns what the refusal says.
  std::string mustRefuse(LockDriver& driver, const Claimant& who) {
    const Instant deadline = in(3s);
    std::string text;
    try {
      ADD_FAILURE() << (granted(driver.acquire(who.request(deadline))) ? "granted" : "busy");
    } catch (const StoreUnavailable& fault) {
      text = fault.what();
    } catch (const WithdrawalUnknown& fault) {  // they had the claim when their connections ended
      text = fault.what();
    }
    EXPECT_LT(now(), deadline + schedulingSlack);
    for (std::size_t node = broken; node < nodeCount; ++node) {
      EXPECT_FALSE(has(node, who.key)) << "left behind on node " << node;
    }
    return text;
  }
};

TEST_P(BrokenMajority, GrantsNothingInTimeAndLeavesNothingBehind) {
  for (const bool connectedBefore : {true, false}) {
    SCOPED_TRACE(connectedBefore ? "connected before" : "connecting");
    const auto driver = open();
    if (connectedBefore) {
      ASSERT_TRUE(allAgree(*driver));
    }
    std::vector<Claimant> refused(GetParam().answers ? 1 : 4);
    strike();
    for (const Claimant& who : refused) {
      const std::string text = mustRefuse(*driver, who);
      for (std::size_t node = 0; node < broken; ++node) {
        EXPECT_NE(text.find(":" + std::to_string(proxies[node]->port())), std::string::npos) << text;
      }
    }
    heal();
    const Claimant next{};
    ASSERT_TRUE(waitUntil([&] {
      try {
        return granted(driver->acquire(next.request()));
      } catch (const Error&) {
        return false;
      }
    }));
    EXPECT_EQ(driver->release(next.claim(), soon()), ReleaseOutcome::released);
    for (const Claimant& who : refused) {
      EXPECT_TRUE(waitUntil([&] {
        (void)driver->holder(next.key, soon());  // what is pending goes out with any call
        return votes(who.key) == 0;
      })) << "a late grant was not released";
    }
  }
}

using DemotedNodes = RedlockTest;

// Their connections stay open, and they refuse only what writes.
TEST_F(DemotedNodes, SayNothingAboutAClaimThatTheyDoNotKnow) {
  const auto driver = open();
  ASSERT_TRUE(allAgree(*driver));
  for (std::size_t node = 0; node < broken; ++node) servers[node].command({"REPLICAOF", "127.0.0.1", "1"});
  const Claimant unknown{};
  EXPECT_THROW((void)driver->release(unknown.claim(), soon()), Error);
  for (std::size_t node = 0; node < broken; ++node) servers[node].command({"REPLICAOF", "NO", "ONE"});
  ASSERT_TRUE(waitUntil([&] {
    try {
      return allAgree(*driver);
    } catch (const Error&) {
      return false;  // they are still being connected to
    }
  }));
  for (std::size_t node = 0; node < broken; ++node) servers[node].command({"REPLICAOF", "127.0.0.1", "1"});
  Renewal renewal{.claim = unknown.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, soon());
  EXPECT_NE(renewal.outcome, RenewOutcome::notOwner);
}

INSTANTIATE_TEST_SUITE_P(Faults, BrokenMajority, ::testing::ValuesIn(nodeFaults), faultName);

using ASlowMajority = RedlockTest;

TEST_F(ASlowMajority, AGrantWithTooLittleLeftIsGivenBack) {
  const auto driver = open("restartGuard=off&nodeTimeout=5s&minValidity=80");
  ASSERT_TRUE(allAgree(*driver));
  for (std::size_t node = 0; node < broken; ++node) {
    proxies[node]->set({.kind = ProxyFault::Kind::delay, .pause = 300ms});
  }
  const Claimant who{};
  EXPECT_THROW((void)driver->acquire(request(who, 1s)), StoreUnavailable);
  EXPECT_EQ(votes(who.key), 0U);
  for (std::size_t node = 0; node < broken; ++node) EXPECT_GE(proxies[node]->fired(), 1U);
  EXPECT_TRUE(granted(driver->acquire(request(who, 1min)))) << "of a longer ttl, enough is left";
}

}  // namespace
}  // namespace lockkeeper::test

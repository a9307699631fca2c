#include <thread>

#include "node_fault.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

/// Two nodes are out of reach when a lock is released that they have voted for.
class PendingRelease : public RedlockTest, public ::testing::WithParamInterface<NodeFault> {};

TEST_P(PendingRelease, TheyGetItWhenTheyAreBackLongBeforeTheLeaseEnds) {
  const auto driver = open();
  ASSERT_TRUE(allAgree(*driver));
  std::vector<Claimant> released(20);
  for (const Claimant& who : released) {
    ASSERT_TRUE(granted(driver->acquire(who.request())));
    ASSERT_TRUE(waitUntil([&] { return votes(who.key) == nodeCount; }));
  }
  for (std::size_t node = 0; node < 2; ++node) GetParam().strike(servers[node], *proxies[node]);
  for (const Claimant& who : released) {
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  }
  if (GetParam().name == std::string("Blackholed")) {
    for (std::size_t node = 0; node < 2; ++node) {
      EXPECT_TRUE(has(node, released[0].key)) << "it cannot have got the release";
    }
  }
  for (std::size_t node = 0; node < 2; ++node) GetParam().heal(servers[node], *proxies[node]);
  EXPECT_TRUE(waitUntil([&] {
    (void)driver->holder("any call carries what is pending", soon());
    std::size_t left = 0;
    for (const Claimant& who : released) left += votes(who.key);
    return left == 0;
  }));
  const Claimant next{};
  EXPECT_TRUE(granted(driver->acquire(next.request())));
}

INSTANTIATE_TEST_SUITE_P(Faults, PendingRelease, ::testing::ValuesIn(nodeFaults), faultName);

class ReleaseDuringRenewal : public RedlockTest {
 protected:
  /// How many scripts the node has run.
  std::string scriptsRun(std::size_t node) const {
    const std::string info = servers[node].command({"INFO", "commandstats"});
    const std::size_t at = info.find("cmdstat_eval:calls=");
    return at == std::string::npos ? "none" : info.substr(at, info.find(',', at) - at);
  }
};

TEST_F(ReleaseDuringRenewal, IsNotUndoneWhereANodeHadLostTheKey) {
  const auto driver = open();
  ASSERT_TRUE(allAgree(*driver));
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  ASSERT_TRUE(waitUntil([&] { return votes(who.key) == nodeCount; }));
  servers[0].command({"DEL", who.key});
  proxies[4]->set({.kind = ProxyFault::Kind::delay, .pause = nodeTimeout * 2});
  const std::string before = scriptsRun(4);
  std::jthread renewing([&] {
    Renewal renewal{.claim = who.claim(), .ttl = longTtl};
    driver->renew({&renewal, 1}, soon());
  });
  ASSERT_TRUE(waitUntil([&] { return scriptsRun(4) != before; })) << "the renewal waits for its answer";
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  renewing.join();
  proxies[4]->passThrough();
  EXPECT_TRUE(waitUntil([&] {
    (void)driver->holder("any call carries what is pending", soon());
    return votes(who.key) == 0;
  }));
}

using ReleaseWithoutQuorum = RedlockTest;

TEST_F(ReleaseWithoutQuorum, IsUnknownAndDoneAllTheSame) {
  const auto driver = open();
  ASSERT_TRUE(allAgree(*driver));
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  ASSERT_TRUE(waitUntil([&] { return votes(who.key) == nodeCount; }));
  for (std::size_t node = 0; node < 3; ++node) servers[node].pause();
  EXPECT_THROW((void)driver->release(who.claim(), soon()), OutcomeUnknown);
  for (std::size_t node = 0; node < 3; ++node) servers[node].resume();
  EXPECT_TRUE(waitUntil([&] { return votes(who.key) == 0; }));
}

}  // namespace
}  // namespace lockkeeper::test

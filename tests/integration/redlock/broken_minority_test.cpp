#include "node_fault.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

/// One or two of the five nodes are of no use.
class BrokenMinority : public RedlockTest,
                       public ::testing::WithParamInterface<std::tuple<NodeFault, std::size_t>> {
 protected:
  static const NodeFault& fault() { return std::get<0>(GetParam()); }
  static std::size_t broken() { return std::get<1>(GetParam()); }

  void strike() {
    for (std::size_t node = 0; node < broken(); ++node) fault().strike(servers[node], *proxies[node]);
  }
  void heal() {
    for (std::size_t node = 0; node < broken(); ++node) fault().heal(servers[node], *proxies[node]);
  }

  /// Takes and releases a lock, whatever the nodes do; `phases` bounds how often it waits for silent ones.
  void mustLock(LockDriver& driver, int phases) {
    const Claimant who{};
    keys.push_back(who.key);
    const Instant start = now();
    ASSERT_TRUE(granted(driver.acquire(who.request())));
    EXPECT_LT(now(), start + phases * nodeTimeout + schedulingSlack);
    EXPECT_EQ(driver.release(who.claim(), soon()), ReleaseOutcome::released);
  }

  int brokenThat(NodeOutcome outcome) const {
    int nodes = 0;
    for (std::size_t node = 0; node < broken(); ++node)
      nodes += rounds->count(proxies[node]->port(), outcome) > 0;
    return nodes;
  }

  std::vector<std::string> keys;
  const std::shared_ptr<Rounds> rounds = std::make_shared<Rounds>();
};

TEST_P(BrokenMinority, LocksAreTakenAllTheSameAndTheBrokenNodesFoundOut) {
  const auto driver = open(withoutGuard, rounds);
  ASSERT_TRUE(allAgree(*driver));
  strike();
  rounds->clear();
  ASSERT_TRUE(waitUntil([&] {
    mustLock(*driver, 1);
    return HasFatalFailure() || brokenThat(NodeOutcome::leftOut) == static_cast<int>(broken());
  })) << "they are still asked, as if they answered";
  for (int i = 0; i < 20; ++i) mustLock(*driver, 1);

  heal();
  rounds->clear();
  EXPECT_TRUE(waitUntil([&] {
    mustLock(*driver, 1);
    return HasFatalFailure() || brokenThat(NodeOutcome::agreed) == static_cast<int>(broken());
  })) << "they are back, but are not asked";
  for (const std::string& key : keys) EXPECT_TRUE(waitUntil([&] { return votes(key) == 0; }));
}

TEST_P(BrokenMinority, ANewClientGetsItsLockToo) {
  strike();
  const auto driver = open(withoutGuard, rounds);
  mustLock(*driver, 2);
  EXPECT_EQ(brokenThat(NodeOutcome::leftOut), static_cast<int>(broken())) << "it must not have connected";
  heal();
}

using FaultAndCount = ::testing::TestParamInfo<std::tuple<NodeFault, std::size_t>>;

INSTANTIATE_TEST_SUITE_P(Faults, BrokenMinority,
                         ::testing::Combine(::testing::ValuesIn(nodeFaults), ::testing::Values(1, 2)),
                         [](const FaultAndCount& what) {
                           return std::get<0>(what.param).name + std::to_string(std::get<1>(what.param));
                         });

}  // namespace
}  // namespace lockkeeper::test

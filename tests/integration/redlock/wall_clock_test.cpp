#include "child_clock.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Five nodes, of which the first has a wall clock that can be set.
class WallClock : public ::testing::Test {
 protected:
  RedisServer& node(std::size_t index) { return index == 0 ? jumping : steady[index - 1]; }
  std::size_t votes(const std::string& key) {
    std::size_t count = 0;
    for (std::size_t index = 0; index < nodeCount; ++index)
      count += node(index).command({"EXISTS", key}) == "1";
    return count;
  }
  bool othersGet(const Claimant& holder) {
    Claimant other;
    other.key = holder.key;
    return granted(driver->acquire({.claim = other.claim(), .ttl = 2s, .deadline = soon()}));
  }
  std::int64_t clockOf(RedisServer& server) { return std::stoll(server.command({"TIME"})); }

  /// Until the server's clock has gone so many seconds away from the others'. Valkey 9 reads it a little
  /// later.
  bool awaitJump(std::int64_t atLeast) {
    return waitUntil([&] {
      const std::int64_t ahead = clockOf(jumping) - clockOf(steady[0]);
      return atLeast > 0 ? ahead > atLeast : ahead < atLeast;
    });
  }

  const ChildClock clock;
  RedisServer jumping{{.environment = clock.environment()}};
  std::array<RedisServer, nodeCount - 1> steady;
  const std::shared_ptr<LockDriver> driver = openRedlock(
      redlockUri({jumping.port(), steady[0].port(), steady[1].port(), steady[2].port(), steady[3].port()},
                 withoutGuard));
};

TEST_F(WallClock, AJumpForwardFreesTheKeyOnOneNodeAndTheNextRenewalGivesItBack) {
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire({.claim = who.claim(), .ttl = 30s, .deadline = soon()})));
  ASSERT_TRUE(waitUntil([&] { return votes(who.key) == nodeCount; }));
  clock.jump(+60);
  ASSERT_TRUE(awaitJump(+50)) << "the shim does nothing";
  ASSERT_TRUE(waitUntil([&] { return votes(who.key) == nodeCount - 1; })) << "the jump frees it there";
  EXPECT_FALSE(othersGet(who));
  EXPECT_TRUE(driver->holder(who.key, soon()));
  Renewal renewal{.claim = who.claim(), .ttl = 30s};
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
  EXPECT_TRUE(waitUntil([&] { return votes(who.key) == nodeCount; }));
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(WallClock, AJumpBackKeepsTheKeyOnOneNodeAndHoldsUpNobody) {
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire({.claim = who.claim(), .ttl = 1s, .deadline = soon()})));
  ASSERT_TRUE(waitUntil([&] { return jumping.command({"EXISTS", who.key}) == "1"; }));
  clock.jump(-60);
  ASSERT_TRUE(awaitJump(-50)) << "the shim does nothing";
  EXPECT_TRUE(waitUntil([&] { return othersGet(who); })) << "when the lease has ended on the others";
  EXPECT_EQ(jumping.command({"GET", who.key}).substr(0, 32), who.token.hex()) << "it keeps the old one";
}

}  // namespace
}  // namespace lockkeeper::test

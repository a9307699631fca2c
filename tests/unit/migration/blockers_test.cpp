#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

/// A state in which nothing stands in the way.
MigrationState ready() {
  MigrationState state;
  state.version = 7;
  state.since = 1h;
  state.target = Rules(Phase::modern);
  Member member;
  member.labels.emplace_back("a:1");
  member.version = 7;
  member.lease = 10s;
  member.locksEndAfter = 40s;
  state.members = {member};
  return state;
}

bool blocked(const MigrationState& state) { return !blockersOf(state, 1min).empty(); }

TEST(Blockers, NothingBlocksWhenAllFollowAndHaveWaited) { EXPECT_FALSE(blocked(ready())); }

TEST(Blockers, AMemberThatGoesByOlderRulesBlocksWhateverItWants) {
  MigrationState state = ready();
  state.members[0].version = 6;
  EXPECT_TRUE(blocked(state));
}

TEST(Blockers, TheOldStoreIsWatchedForTheWholeWindowBeforeKeysLeaveIt) {
  MigrationState state = ready();
  state.since = 50s;
  EXPECT_TRUE(blocked(state));
  state.target = Rules(Phase::legacy);
  EXPECT_FALSE(blocked(state)) << "nobody leaves it";
}

TEST(Blockers, TheOldStoreIsWatchedWheneverSomeKeyLeavesIt) {
  const auto waits = [](const char* current, const char* target) {
    MigrationState state = ready();
    state.since = 50s;
    state.current = Rules::parse(current);
    state.target = Rules::parse(target);
    return blocked(state);
  };
  EXPECT_TRUE(waits("order:* = both, * = modern", "* = modern"));
  EXPECT_TRUE(waits("order:* = both, order:vip* = modern, * = legacy",
                    "order:vip* = modern, order:* = both, * = legacy"))
      << "the order decides";
  EXPECT_TRUE(waits("25% = modern, * = both", "50% = modern, * = both"));
  EXPECT_TRUE(waits("a? = modern, * = both", "a* = modern, * = both"));
  EXPECT_TRUE(waits("a* = both, * = modern", "b* = both, * = modern"));
  EXPECT_FALSE(waits("* = modern", "order:* = both, * = modern")) << "nobody leaves it";
  EXPECT_FALSE(waits("order:* = both, * = modern", "order:* = both, x:* = both, * = modern"))
      << "what was in both stays there";
  EXPECT_FALSE(waits("50% = modern, * = both", "25% = modern, * = both"));
  EXPECT_FALSE(waits("a* = modern, b* = legacy, * = both", "a* = modern, * = both"));
}

}  // namespace
}  // namespace lockkeeper::migration

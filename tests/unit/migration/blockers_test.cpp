#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

/// A board on which nothing stands in the way.
BoardState ready() {
  BoardState state;
  state.version = 7;
  state.since = 1h;
  state.target = Rules(Phase::modern);
  Member member;
  member.labels.emplace_back("a:1");
  member.version = 7;
  member.target = Rules(Phase::modern);
  member.lease = 10s;
  member.settle = 40s;
  state.members = {member};
  return state;
}

bool blocked(const BoardState& state) { return !blockersOf(state, *state.target, 1min).empty(); }

TEST(Blockers, NothingBlocksWhenAllFollowAndHaveWaited) { EXPECT_FALSE(blocked(ready())); }

TEST(Blockers, AMemberThatGoesByOlderRulesBlocksWhateverItWants) {
  BoardState state = ready();
  state.members[0].version = 6;
  EXPECT_TRUE(blocked(state));
}

TEST(Blockers, TheOldStoreIsWatchedForTheWholeWindowBeforeKeysLeaveIt) {
  BoardState state = ready();
  state.since = 50s;
  EXPECT_TRUE(blocked(state));
  state.target = Rules(Phase::legacy);
  state.members[0].target = Rules(Phase::legacy);
  EXPECT_FALSE(blocked(state)) << "nobody leaves it";
}

TEST(Blockers, TheOldStoreIsWatchedWheneverSomeKeyLeavesIt) {
  const auto waits = [](const char* settled, const char* target) {
    BoardState state = ready();
    state.since = 50s;
    state.settled = Rules::parse(settled);
    state.target = Rules::parse(target);
    state.members[0].target = *state.target;
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
  EXPECT_FALSE(waits("50% = modern, * = both", "25% = modern, * = both"));
  EXPECT_FALSE(waits("a* = modern, b* = legacy, * = both", "a* = modern, * = both"));
}

}  // namespace
}  // namespace lockkeeper::migration

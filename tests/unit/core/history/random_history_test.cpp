// Histories as a store that is right makes them are good, and a change of one call is found.

#include <algorithm>
#include <random>
#include <vector>

#include "chosen_seed.h"
#include "history/story.h"

namespace lockkeeper::test {
namespace {

using history::Phase;
using history::Record;
using history::Rule;

/// One grant of many that follow each other, with a read and a write of a counter under it.
struct Turn {
  std::int64_t invoked = 0, queued = 0, granted = 0, released = 0;
  Fence fence = 0;
  std::int64_t read = 0, written = 0;
};

/// `turns` grants of one key, to four processes; each waits in the queue while those before it have the key.
std::vector<Turn> randomTurns(std::mt19937& random, int turns) {
  std::vector<Turn> all;
  std::int64_t time = 10'000'000;
  std::int64_t asked = time;
  Fence fence = 0;
  for (int i = 0; i < turns; ++i) {
    asked = std::max(asked + 2, time - static_cast<std::int64_t>(random() % 300));
    Turn turn;
    turn.invoked = asked;
    turn.queued = asked + 1;
    turn.granted = std::max(time, asked + 2) + 1 + static_cast<std::int64_t>(random() % 20);
    turn.released = turn.granted + 10 + static_cast<std::int64_t>(random() % 50);
    turn.fence = fence += 1 + random() % 3;
    turn.read = i;
    turn.written = i + 1;
    time = turn.released;
    all.push_back(turn);
  }
  return all;
}

Story storyOf(const std::vector<Turn>& turns) {
  Story story({.fences = true, .fifo = true});
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const Turn& turn = turns[i];
    const std::string process = "p" + std::to_string(i % 4);
    const auto id = story.invoke({.process = process, .within = 1'000'000}, turn.invoked);
    story.tell(Phase::queued, process, id, turn.queued);
    story.answer({.phase = Phase::ok,
                  .process = process,
                  .id = id,
                  .fence = turn.fence,
                  .until = turn.granted + 1'000},
                 turn.granted);
    story.read(process, id, turn.read, turn.granted + 2);
    story.write(process, id, turn.written, turn.granted + 5);
    story.release(process, id, turn.released);
  }
  story.end(turns.back().released + 10'000);
  return story;
}

TEST(RandomHistory, IsGoodUntilOneCallIsChanged) {
  const unsigned seed = chosenSeed();
  SCOPED_TRACE("LOCKKEEPER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    const std::vector<Turn> turns = randomTurns(random, 30);
    storyOf(turns).isGood();
    const std::size_t which = 1 + random() % (turns.size() - 1);
    const auto brokenBy = [&](auto change) {
      std::vector<Turn> changed = turns;
      change(changed[which], changed[which - 1]);
      return check(storyOf(changed).history());
    };
    EXPECT_GT(brokenBy([](Turn& turn, Turn& before) {
                before.released = turn.granted + 1;
              }).count(Rule::twoHolders),
              0U);
    EXPECT_GT(brokenBy([](Turn& turn, Turn& before) { turn.fence = before.fence; }).count(Rule::fence), 0U);
    EXPECT_GT(brokenBy([](Turn& turn, Turn& before) { turn.read = before.read; }).count(Rule::lostUpdate),
              0U);
    EXPECT_GT(brokenBy([](Turn& turn, Turn& before) {
                turn.queued = turn.invoked = before.queued + 1;
                std::swap(before.granted, turn.granted);
                std::swap(before.released, turn.released);
              }).count(Rule::order),
              0U);
    EXPECT_GT(brokenBy([](Turn& turn, Turn&) {
                turn.invoked = turn.granted - 1'000'001;
                turn.queued = turn.invoked;
              }).count(Rule::noAnswer),
              0U);
  }
}

TEST(RandomHistory, OfALimitIsGoodUntilOneUnitMoreIsTaken) {
  const unsigned seed = chosenSeed();
  SCOPED_TRACE("LOCKKEEPER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    std::int64_t time = 0, fullAt = 0;
    Story story;
    story.history().addPolicy(RatePolicy::parse("sms", {{"rate", "1000/s"}, {"burst", "5"}}));
    for (int i = 0; i < 200; ++i) {
      time += static_cast<std::int64_t>(random() % 2'000);
      if (std::max(fullAt, time) - time > 4'000) continue;
      fullAt = std::max(fullAt, time) + 1'000;
      story.take(1, time);
    }
    story.isGood();
    story.take(5, fullAt - 1);  // a bucket that is not quite full
    story.breaks(Rule::limit);
  }
}

}  // namespace
}  // namespace lockkeeper::test

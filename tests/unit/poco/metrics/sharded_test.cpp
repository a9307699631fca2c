#include "metrics/sharded.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

namespace lockkeeper::poco {
namespace {

TEST(Sharded, ThreadsThatShareAShardLoseNothing) {
  struct Counts {
    Count calls;
  };
  Sharded<Counts> counts;
  Counts* shards[2] = {};
  std::atomic<std::uint64_t> counted[2] = {};
  std::atomic<int> overlaps = 0;  // how often a thread has seen that the other one had counted meanwhile
  std::latch begun(1);
  const auto count = [&](std::size_t self) {
    shards[self] = &counts.mine();
    if (self == 0) begun.count_down();
    std::uint64_t seen = 0;
    for (std::uint64_t own = 1; own < 100'000 || overlaps < 200; ++own) {
      counts.mine().calls.add();
      counted[self] = own;
      if (const std::uint64_t theirs = counted[1 - self]; theirs != seen) {
        seen = theirs;
        ++overlaps;
      }
    }
  };
  std::thread first(count, 0);
  begun.wait();
  // Shards are given out in turn.
  for (std::size_t i = 1; i < counts.shardCount; ++i) std::thread([&] { counts.mine(); }).join();
  std::thread second(count, 1);
  first.join();
  second.join();
  EXPECT_EQ(shards[0], shards[1]);
  EXPECT_EQ(counts.sum([](const Counts& each) -> const Count& { return each.calls; }),
            counted[0] + counted[1]);
}

}  // namespace
}  // namespace lockkeeper::poco

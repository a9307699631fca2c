#include <thread>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using SlowStore = RedisFaultTest;

TEST_F(SlowStore, KeepsThousandsOfLocksThoughEachAnswerTakesHalfASecond) {
  constexpr std::size_t threadCount = 8;
  constexpr std::size_t locksEach = 400;
  constexpr auto ttl = 5s;
  LockManager manager(openProxied());
  std::vector<std::vector<Lock>> held(threadCount);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < threadCount; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t n = 0; n < locksEach; ++n) {
        held[i].push_back(manager.lock(std::to_string(i) + "/" + std::to_string(n), {.ttl = ttl}));
      }
    });
  }
  threads.clear();

  proxy.set({.kind = ProxyFault::Kind::delay, .pause = 500ms});
  const auto clock = systemClock();
  const Instant end = clock->now() + ttl + ttl / 2;
  int lost = 0;
  ASSERT_TRUE(waitUntil([&] {
    lost = 0;
    for (const auto& locks : held) {
      for (const Lock& lock : locks) lost += !lock.valid();
    }
    return lost > 0 || clock->now() >= end;
  }));
  EXPECT_EQ(lost, 0);
  EXPECT_GT(proxy.fired(), 0U);
  proxy.passThrough();
}

}  // namespace
}  // namespace lockkeeper::test

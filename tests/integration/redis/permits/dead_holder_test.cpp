#include <future>
#include <list>
#include <numeric>
#include <random>
#include <thread>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/permit/semaphore.h"
#include "paused_reader.h"
#include "process.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t limit = 5;

class DeadHolder : public RedisFaultTest {
 protected:
  Process member() {
    return Process({PERMIT_MEMBER, std::to_string(server.port()), std::to_string(1 + random() % 3)});
  }
  std::uint32_t taken() {
    const auto holders = capability<Permits>(*direct)->shareHolders("s", soon());
    return std::accumulate(holders.begin(), holders.end(), std::uint32_t{0},
                           [](std::uint32_t sum, const Holder& each) { return sum + each.share->weight; });
  }
  // All keys but the counters of fences, which have an end.
  std::string leftOver() const {
    return server.command({"EVAL",
                           "local left = '' for _, key in ipairs(redis.call('KEYS', '*')) do "
                           "if not string.find(key, ':fence$') or redis.call('TTL', key) < 0 then left = "
                           "left .. key .. ' ' end end "
                           "return left",
                           "0"});
  }

  std::mt19937 random{std::random_device{}()};
  LockManager manager{direct};
};

TEST_F(DeadHolder, AfterRandomKillsTheCountIsExactWithinATtlAndTheStoreIsEmpty) {
  std::list<Process> members;
  for (int number = 0; number < 5; ++number) members.push_back(member());
  ASSERT_TRUE(waitUntil([&] { return taken() > 0; }));
  bool wasTaken = false;
  for (int kills = 0; kills < 60; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds{random() % 40});
    const std::uint32_t now = taken();
    ASSERT_LE(now, limit);
    wasTaken = wasTaken || now > 0;
    members.erase(std::next(members.begin(), static_cast<std::ptrdiff_t>(random() % members.size())));
    members.push_back(member());
  }
  EXPECT_TRUE(wasTaken);
  members.clear();
  const Instant dead = now();
  ASSERT_TRUE(waitUntil([&] { return taken() == 0; }, 5s));
  EXPECT_LT(now() - dead, 2s) << "the ttl is one";
  // Several that died while they waited are in front.
  Semaphore semaphore(manager, "s", limit);
  auto all = semaphore.tryAcquire(limit, 20s);
  auto whole = manager.tryLock("k", {.waitFor = 20s});
  ASSERT_TRUE(all && whole);
  EXPECT_LT(now() - dead, 11s);
  EXPECT_EQ(taken(), limit);
  EXPECT_EQ(all->release(), ReleaseResult::released);
  EXPECT_EQ(whole->release(), ReleaseResult::released);
  EXPECT_TRUE(waitUntil([&] { return leftOver().empty(); }, 15s)) << leftOver();
}

TEST_F(DeadHolder, AReaderThatDiesHoldsUpAWriterForItsTtlAndNoLonger) {
  const auto reader = openRedis(server.port());
  Claimant dies;
  dies.key = "k";
  dies.share = Share{};
  AcquireRequest request = dies.request();
  request.ttl = 700ms;
  ASSERT_TRUE(granted(reader->acquire(request)));
  Claimant lives = dies;
  lives.token = Token::generate(*systemRandom());
  ASSERT_TRUE(granted(reader->acquire(lives.request())));
  const Instant began = now();
  auto writing = std::async(std::launch::async, [&] { return manager.lock("k"); });
  ASSERT_TRUE(waitUntil([&] { return server.command({"ZCARD", "{k}:lockkeeper:queue"}) == "1"; }));
  ASSERT_EQ(reader->release(lives.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(writing.get().valid());
  EXPECT_GE(now() - began, 600ms);
  EXPECT_LT(now() - began, 2s);
}

TEST_F(DeadHolder, AReaderThatStandsStillCountsForItsTtlAndIsTold) {
  expectAPausedReaderToLose({PERMIT_MEMBER, std::to_string(server.port()), "read"}, manager);
}

TEST_F(DeadHolder, AShareThatIsGrantedToTheDeadCountsForItsTtl) {
  const std::string dead = std::string(32, 'a') + "@dead:1@1/" + std::to_string(limit);
  Semaphore semaphore(manager, "s", limit);
  auto all = semaphore.acquire(limit);
  ASSERT_EQ(server.command({"ZADD", "{s}:lockkeeper:queue", "1", dead}), "1");
  // It would poll, so that nothing but its silence shows that it is dead. Its ttl is a second.
  ASSERT_EQ(server.command({"HSET", "{s}:lockkeeper:waiters", dead, "9999999999999 1 1000 0 "}), "1");
  LockManager others(openRedis(server.port()));
  Semaphore same(others, "s", limit);
  auto most = std::async(std::launch::async, [&] { return same.acquire(limit - 1); });
  auto rest = std::async(std::launch::async, [&] { return same.tryAcquire(1, 20s); });
  ASSERT_TRUE(waitUntil([&] { return server.command({"ZCARD", "{s}:lockkeeper:queue"}) == "3"; }));
  all.release();
  const Instant released = now();
  // Who of the two came first is not known: one permit is granted to the dead one.
  const Lock first = most.get();
  const auto second = rest.get();
  EXPECT_TRUE(first.valid());
  EXPECT_TRUE(second);
  EXPECT_GE(now() - released, 900ms);
  EXPECT_LT(now() - released, 5s);
}

}  // namespace
}  // namespace lockkeeper::test

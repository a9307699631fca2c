#include <future>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/permit/shared_mutex.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class SharedKey : public RedisFaultTest {
 protected:
  static Claimant sharer(const std::string& key, Share share) {
    Claimant who;
    who.key = key;
    who.share = share;
    return who;
  }
};

TEST_F(SharedKey, OtherClientsFindItTaken) {
  const Claimant reader = sharer("k", {1, 3});
  ASSERT_TRUE(granted(direct->acquire(reader.request())));
  EXPECT_EQ(server.command({"SET", "k", "theirs", "NX", "PX", "1000"}), "(nil)");
  EXPECT_EQ(direct->release(reader.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(server.command({"SET", "k", "theirs", "NX", "PX", "100000"}), "OK");
  EXPECT_FALSE(granted(direct->acquire(reader.request())));
  EXPECT_EQ(direct->release(reader.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_EQ(server.command({"GET", "k"}), "theirs");
}

TEST_F(SharedKey, DataOfAnotherTypeIsLeftAlone) {
  const std::vector<std::vector<std::string>> others{{"ZADD", "k", "1", "theirs"},
                                                     {"ZADD", "k", "3145728", "permits"},
                                                     {"ZADD", "k", "1", "permits", "2", "theirs"},
                                                     {"HSET", "k", "a", "1"},
                                                     {"RPUSH", "k", "1"}};
  for (const auto& command : others) {
    SCOPED_TRACE(command[0]);
    server.command({"DEL", "k"});
    server.command(command);
    const std::string before = server.command({"DUMP", "k"});
    const Claimant reader = sharer("k", {1, 3});
    EXPECT_FALSE(granted(direct->acquire(reader.request())));
    EXPECT_EQ(direct->release(reader.claim(), soon()), ReleaseOutcome::notOwner);
    Renewal renewal{.claim = reader.claim(), .ttl = longTtl};
    direct->renew({&renewal, 1}, soon());
    EXPECT_EQ(renewal.outcome, RenewOutcome::notOwner);
    auto& permits = *capability<Permits>(*direct);
    EXPECT_TRUE(permits.shareHolders("k", soon()).empty());
    EXPECT_FALSE(permits.resize("k", 4, soon()));
    EXPECT_EQ(server.command({"DUMP", "k"}), before);
    const auto shown = direct->holder("k", soon());
    ASSERT_TRUE(shown);
    EXPECT_TRUE(capability<Breakable>(*direct)->breakLock("k", soon(), &*shown));
    EXPECT_TRUE(isFree("k"));
  }
}

TEST_F(SharedKey, AReleaseServesMoreReadersThanOneCallTakesOut) {
  constexpr std::uint32_t many = 230;
  LockManager writers(openRedis(server.port()));
  std::optional<Lock> writing = writers.lock("k");
  const auto readers = openRedis(server.port());
  std::vector<Claimant> all(many, sharer("k", {1, many}));
  std::vector<std::future<AcquireResult>> waiting;
  for (Claimant& each : all) {
    each.token = Token::generate(*systemRandom());
    waiting.push_back(std::async(std::launch::async, [&] {
      return capability<Waitable>(*readers)->acquireWaiting(each.request(), 30s, {});
    }));
  }
  ASSERT_TRUE(waitUntil([&] {
    return server.command({"ZCARD", "{k}:lockkeeper:queue"}) == std::to_string(many);
  }));
  writing.reset();
  const Instant released = now();
  for (auto& each : waiting) EXPECT_TRUE(granted(each.get()));
  EXPECT_LT(now() - released, 3s) << "nobody had to find it by looking";
  EXPECT_EQ(capability<Permits>(*readers)->shareHolders("k", soon()).size(), many);
}

TEST_F(SharedKey, AServerThatRestartsEmptyLosesTheSharesAndTheyAreTold) {
  LockManager manager(direct);
  Semaphore semaphore(manager, "s", 3, {.ttl = 2s});
  const Lock held = semaphore.acquire(2);
  server.command({"FLUSHALL"});
  EXPECT_TRUE(waitUntil([&] { return held.lost().stop_requested(); }, 5s));
  EXPECT_FALSE(held.valid());
  EXPECT_TRUE(semaphore.tryAcquire(3));
}

}  // namespace
}  // namespace lockkeeper::test

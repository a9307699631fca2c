#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "forked_child.h"
#include "lockkeeper/lock_manager.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Counts the ends of locks.
class Ends final : public Listener {
 public:
  void on(const Event& event) override {
    const std::lock_guard guard(mutex_);
    if (event.kind == EventKind::released) ++released_[event.error];
    if (event.kind == EventKind::lost) ++lost_;
  }
  int released(std::optional<ErrorCode> error = {}) const {
    const std::lock_guard guard(mutex_);
    const auto found = released_.find(error);
    return found == released_.end() ? 0 : found->second;
  }
  int lost() const {
    const std::lock_guard guard(mutex_);
    return lost_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::optional<ErrorCode>, int> released_;
  int lost_ = 0;
};

/// A manager whose driver has the script, so that it posts.
class PostedRelease : public RedisFaultTest {
 protected:
  LockManager managerOf(std::shared_ptr<LockDriver> driver) const {
    ManagerOptions options;
    options.environment.listener = ends;
    LockManager manager(std::move(driver), options);
    EXPECT_EQ(manager.lock("first").release(), ReleaseResult::released);
    return manager;
  }
  bool freed(const std::string& key, std::chrono::milliseconds bound = 20s) const {
    return waitUntil([&] { return isFree(key); }, bound);
  }

  const std::shared_ptr<Ends> ends = std::make_shared<Ends>();
};

TEST_F(PostedRelease, TheOutcomeReachesTheListenerThoughNobodyAsksForIt) {
  LockManager manager = managerOf(direct);
  { const Lock held = manager.lock("k"); }
  EXPECT_TRUE(freed("k"));
  EXPECT_TRUE(waitUntil([&] { return ends->released() == 2; }));
  Lock stolen = manager.lock("k");
  ASSERT_EQ(server.command({"SET", "k", "somebody else"}), "OK");
  stolen = {};
  EXPECT_TRUE(waitUntil([&] { return ends->lost() == 1; }));
  EXPECT_EQ(server.command({"GET", "k"}), "somebody else");
}

TEST_F(PostedRelease, EachThreadFindsItsKeyFreeAtOnceWhoeverReadsTheReplies) {
  constexpr int threadCount = 16;
  constexpr int rounds = 200;
  std::atomic<int> taken = 0;
  {
    LockManager manager = managerOf(direct);
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < threadCount; ++thread) {
      threads.emplace_back([&, key = "own/" + std::to_string(thread)] {
        for (int round = 0; round < rounds; ++round) taken += manager.tryLock(key).has_value();
      });
    }
  }
  EXPECT_EQ(taken, threadCount * rounds);
  EXPECT_EQ(ends->released(), taken + 1);
}

TEST_F(PostedRelease, ThousandsAtOnceAreAllToldWhenTheManagerHasEnded) {
  constexpr int count = 5000;
  {
    LockManager manager = managerOf(direct);
    std::vector<Lock> held;
    held.reserve(count);
    for (int i = 0; i < count; ++i) held.push_back(manager.lock("many/" + std::to_string(i)));
    held.clear();
  }
  EXPECT_EQ(ends->released(), count + 1);
  EXPECT_EQ(server.command({"EXISTS", "many/0", "many/2500", "many/4999"}), "0");
}

TEST_F(PostedRelease, AReplyThatIsLostIsToldAndTheKeyStaysFree) {
  LockManager manager = managerOf(openProxied("ioTimeout=300ms"));
  Lock held = manager.lock("k");
  proxy.set({.kind = ProxyFault::Kind::dropReplies});
  held = {};
  EXPECT_TRUE(freed("k"));
  EXPECT_TRUE(waitUntil([&] { return ends->released(ErrorCode::outcomeUnknown) == 1; }));
  EXPECT_GT(proxy.fired(), 0U);
  proxy.passThrough();
  EXPECT_TRUE(manager.lock("k", {.waitFor = 20s}).valid());
}

TEST_F(PostedRelease, AConnectionThatIsCutBehindItCostsATryInTheBackground) {
  LockManager manager = managerOf(openProxied());
  Lock held = manager.lock("k");
  proxy.set({.kind = ProxyFault::Kind::blackhole});
  held = {};
  ASSERT_TRUE(waitUntil([&] { return proxy.fired() > 0; })) << "it has swallowed the release";
  proxy.passThrough();
  proxy.endConnections(Ending::rst);
  EXPECT_TRUE(freed("k"));
  EXPECT_TRUE(waitUntil([&] { return ends->released(ErrorCode::outcomeUnknown) == 1; }));
}

TEST_F(PostedRelease, AServerThatHasLostTheScriptIsAskedAgainInTheBackground) {
  LockManager manager = managerOf(direct);
  for (int round = 1; round <= 3; ++round) {
    Lock held = manager.lock("k", {.waitFor = 20s});
    ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    held = {};
    EXPECT_TRUE(freed("k"));
    EXPECT_TRUE(waitUntil([&] { return ends->released(ErrorCode::storeUnavailable) == round; }));
    EXPECT_EQ(manager.lock("k", {.waitFor = 20s}).release(), ReleaseResult::released);
  }
}

TEST_F(PostedRelease, AServerThatMayNotWriteIsAskedAgainInTheBackground) {
  LockManager manager = managerOf(direct);
  Lock held = manager.lock("k");
  ASSERT_EQ(server.command({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
  held = {};
  EXPECT_TRUE(waitUntil([&] { return ends->released(ErrorCode::storeUnavailable) == 1; }));
  EXPECT_FALSE(isFree("k"));
  ASSERT_EQ(server.command({"CONFIG", "SET", "min-replicas-to-write", "0"}), "OK");
  EXPECT_TRUE(freed("k"));
}

TEST_F(PostedRelease, OnANewConnectionTheFirstOneIsWaitedFor) {
  LockManager manager = managerOf(direct);
  ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
  server.command({"CLIENT", "KILL", "TYPE", "normal"});
  const int before = ends->released();
  std::optional<Lock> held;
  ASSERT_TRUE(waitUntil([&] {
    try {
      held = manager.lock("k");
      return true;
    } catch (const Error&) {
      return false;
    }
  }));
  held.reset();
  EXPECT_EQ(ends->released(), before + 1) << "the server that it leads to may not have the script";
  EXPECT_EQ(server.command({"EXISTS", "k"}), "0");
}

TEST_F(PostedRelease, AServerThatStandsStillHoldsUpNobody) {
  const auto clock = systemClock();
  std::optional<LockManager> manager = managerOf(openRedis(server.port(), "ioTimeout=2s"));
  std::vector<Lock> held;
  for (int i = 0; i < 200; ++i) held.push_back(manager->lock("k/" + std::to_string(i)));
  server.pause();
  const Instant began = clock->now();
  held.clear();
  EXPECT_LT(clock->now() - began, 2s) << "no reply is waited for, which would take as long";
  // A slow machine has not sent all of them when the connection is given up.
  EXPECT_TRUE(waitUntil([&] {
    return ends->released(ErrorCode::outcomeUnknown) + ends->released(ErrorCode::storeUnavailable) == 200;
  }));
  const Instant ended = clock->now();
  manager.reset();
  EXPECT_LT(clock->now() - ended, 5s);
  server.resume();
  EXPECT_TRUE(freed("k/0")) << "it was sent";
}

TEST_F(PostedRelease, AForkedChildTellsNothingAndTouchesNothing) {
  auto manager = std::make_unique<LockManager>(managerOf(openProxied()));
  Lock held = manager->lock("k");
  proxy.set({.kind = ProxyFault::Kind::delay, .pause = 500ms});
  held = {};
  const int failedCheck = inForkedChild([&] {
    manager.reset();
    return ends->released() == 1 ? 0 : 1;
  });
  EXPECT_EQ(failedCheck, 0);
  EXPECT_EQ(ends->released(), 1);
  EXPECT_TRUE(waitUntil([&] { return ends->released() == 2; })) << "the parent's connection lives on";
  EXPECT_EQ(proxy.connections(), 1U);
}

}  // namespace
}  // namespace lockkeeper::test

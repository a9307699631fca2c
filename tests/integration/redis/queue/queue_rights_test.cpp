#include <atomic>
#include <mutex>
#include <thread>

#include "advanced_clock.h"
#include "queue/queue_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Collects what drivers note.
class Notes final : public Listener {
 public:
  void on(const Event& event) override {
    if (event.kind != EventKind::noted) return;
    const std::lock_guard guard(mutex_);
    texts_.emplace_back(event.text);
  }
  std::size_t with(const std::string& part) const {
    const std::lock_guard guard(mutex_);
    std::size_t count = 0;
    for (const std::string& text : texts_) count += text.find(part) != std::string::npos;
    return count;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

constexpr const char* lockRights =
    " on >let-me-in ~* -@all +@connection +info +set +get +incr +del +pexpire +pttl +time +eval +evalsha "
    "+scan +wait";
constexpr const char* queueRights = " +exists +zadd +zrange +zrem +zscore +hget +hset +hdel";

/// A server with a user who has the rights to locks and those that are named.
class RestrictedUser {
 public:
  explicit RestrictedUser(const std::string& rights)
      : server({.password = "not-for-you", .users = {"user keeper" + std::string(lockRights) + rights}}) {
    environment.listener = notes;
  }

  LockManager keeper() const {
    ManagerOptions options;
    options.environment = environment;
    return LockManager(open("keeper:let-me-in", environment), options);
  }
  LockManager everybody() const { return LockManager(open(":not-for-you", {})); }
  void change(const std::string& rights) const {
    ASSERT_EQ(server.command({"ACL", "SETUSER", "keeper", rights}), "OK");
  }
  bool queued(std::size_t count) const {
    return waitUntil([&] {
      return server.command({"ZCARD", "{k}:lockkeeper:queue"}) == std::to_string(count);
    });
  }

  const RedisServer server;
  const std::shared_ptr<Notes> notes = std::make_shared<Notes>();
  Environment environment;

 private:
  std::shared_ptr<LockDriver> open(const std::string& user, const Environment& its) const {
    StoreRegistry registry;
    redis::use(registry);
    return registry.open("redis://" + user + "@127.0.0.1:" + std::to_string(server.port()), its);
  }
};

/// Waits and is served while the holder is a client with all rights, twice.
void servesAUserWith(const std::string& rights, const std::string& note) {
  const RestrictedUser user(rights);
  LockManager holders = user.everybody();
  LockManager waiters = user.keeper();
  for (int round = 0; round < 2; ++round) {
    std::optional<Lock> held = holders.lock("k");
    auto next = std::async(std::launch::async, [&] { return waiters.tryLock("k", {.waitFor = 20s}); });
    ASSERT_TRUE(waitUntil([&] { return user.notes->with(note) == 1; })) << note;
    held.reset();
    const Instant released = now();
    std::optional<Lock> lock = next.get();
    ASSERT_TRUE(lock);
    EXPECT_LT(now() - released, 2s);
    EXPECT_EQ(lock->release(), ReleaseResult::released);
  }
  EXPECT_EQ(user.notes->with(note), 1U) << "once";
}

TEST(QueueRights, WhoMayNotSubscribePollsInTheQueue) {
  servesAUserWith(std::string(queueRights) + " +publish resetchannels &lockkeeper:*",
                  "polls, four times a second");
}

TEST(QueueRights, WhoMayNotPublishPollsInTheQueue) {
  servesAUserWith(std::string(queueRights) + " +subscribe resetchannels &lockkeeper:*",
                  "polls, four times a second");
}

TEST(QueueRights, WhoMayNotUseTheChannelsPollsInTheQueue) {
  servesAUserWith(std::string(queueRights) + " +subscribe +publish resetchannels",
                  "polls, four times a second");
}

TEST(QueueRights, WhoMayNotQueuePollsAndReleasesAsBefore) { servesAUserWith("", "+zadd"); }

TEST(QueueRights, WhoMayNotTakeOutEntriesReleasesWithoutTheQueue) {
  const RestrictedUser user(std::string(queueRights) +
                            " -zrem +publish +subscribe resetchannels &lockkeeper:*");
  LockManager manager = user.keeper();
  Lock held = manager.lock("k");
  const std::string queue = "{k}:lockkeeper:queue";
  const std::string waiters = "{k}:lockkeeper:waiters";
  ASSERT_EQ(user.server.command({"ZADD", queue, "1", "dead", "2", "unreachable"}), "2");
  ASSERT_EQ(user.server.command(
                {"HSET", waiters, "dead", "1 1 1000 0 gone", "unreachable", "9999999999999 1 1000 0 gone"}),
            "2");
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_EQ(user.server.command({"EXISTS", "k"}), "0");
  EXPECT_EQ(user.notes->with("+zadd"), 1U);
}

TEST(QueueRights, WhoMayNotAskWhoListensHandsOver) {
  const RestrictedUser user(std::string(queueRights) + " +publish +subscribe resetchannels &lockkeeper:*");
  LockManager holders = user.keeper();
  LockManager others = user.everybody();
  const std::string unreachable = "9999999999999 1 60000 0 lockkeeper:gone";
  std::optional<Lock> held = holders.lock("k", {.waitFor = 20s});
  ASSERT_EQ(user.server.command({"ZADD", "{k}:lockkeeper:queue", "1", "unreachable"}), "1");
  ASSERT_EQ(user.server.command({"HSET", "{k}:lockkeeper:waiters", "unreachable", unreachable}), "1");
  auto next = std::async(std::launch::async, [&] { return others.tryLock("k", {.waitFor = 20s}); });
  ASSERT_TRUE(user.queued(2));
  EXPECT_EQ(held->release(), ReleaseResult::released);
  EXPECT_TRUE(next.get()) << "nothing is granted for a minute to one at whose channel nobody listens";
}

TEST(QueueRights, WhoLosesTheRightToTheQueueReleasesWhatItGotFromThere) {
  const RestrictedUser user(std::string(queueRights) + " +publish +subscribe resetchannels &lockkeeper:*");
  LockManager holders = user.everybody();
  const auto hasChannel = [&] {
    const std::string waiters = user.server.command({"HVALS", "{k}:lockkeeper:waiters"});
    return waiters.find("lockkeeper:") != std::string::npos;
  };
  LockManager waiters = user.keeper();
  std::optional<Lock> held = holders.lock("k", {.waitFor = 20s});
  auto next = std::async(std::launch::async, [&] { return waiters.tryLock("k", {.waitFor = 20s}); });
  ASSERT_TRUE(waitUntil(hasChannel));
  held.reset();
  std::optional<Lock> lock = next.get();
  ASSERT_TRUE(lock);
  user.change("-exists");
  EXPECT_EQ(lock->release(), ReleaseResult::released);
  EXPECT_EQ(user.server.command({"EXISTS", "k"}), "0");
}

TEST(QueueRights, WhoMayOnlyReleaseIsToldOnce) {
  const RestrictedUser user("");
  LockManager manager = user.keeper();
  for (int round = 0; round < 2; ++round) EXPECT_EQ(manager.lock("k").release(), ReleaseResult::released);
  EXPECT_EQ(user.notes->with("+zadd"), 1U);
}

TEST(QueueRights, AHolderWhoMayNotWriteTheHashHandsOver) {
  const RestrictedUser user(std::string(queueRights) +
                            " -hset +publish +subscribe resetchannels &lockkeeper:*");
  LockManager holders = user.keeper();
  LockManager others[] = {user.everybody(), user.everybody()};
  std::optional<Lock> held = holders.lock("k");
  std::vector<std::future<bool>> served;
  for (LockManager& each : others) {
    served.push_back(
        std::async(std::launch::async, [&] { return each.tryLock("k", {.waitFor = 20s}).has_value(); }));
    ASSERT_TRUE(user.queued(served.size()));
  }
  // They have connections for messages, and so the second one looks after four seconds only.
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(held->release(), ReleaseResult::released);
  for (std::future<bool>& each : served) EXPECT_TRUE(each.get());
}

TEST(QueueRights, WhoIsRefusedWhileItWaitsLeavesTheQueue) {
  const RestrictedUser user(std::string(queueRights) + " +publish +subscribe resetchannels &lockkeeper:*");
  LockManager holders = user.everybody();
  LockManager waiters = user.keeper();
  std::optional<Lock> held = holders.lock("k");
  auto next = std::async(std::launch::async, [&] { return waiters.tryLock("k", {.waitFor = 20s}); });
  ASSERT_TRUE(user.queued(1));
  const Instant refused = now();
  user.change("-zscore");
  EXPECT_TRUE(user.queued(0));
  EXPECT_LT(now() - refused, 3s) << "it did not only die there";
  held.reset();
  EXPECT_TRUE(next.get());
}

TEST(QueueRights, ARefusalLastsAMinute) {
  RestrictedUser user("");
  const auto clock = std::make_shared<AdvancedClock>();
  user.environment.clock = clock;
  LockManager holders = user.everybody();
  LockManager waiters = user.keeper();
  std::optional<Lock> held = holders.lock("k");
  EXPECT_FALSE(waiters.tryLock("k", {.waitFor = 100ms}));
  EXPECT_EQ(user.notes->with("+zadd"), 1U);
  for (const char* right : {"+exists", "+zadd", "+zrange", "+zrem", "+zscore", "+hget", "+hset", "+hdel"}) {
    user.change(right);
  }
  clock->ahead = 40s;
  EXPECT_EQ(waiters.lock("another").release(), ReleaseResult::released) << "as the minute goes on";
  clock->ahead = 61s;
  auto next = std::async(std::launch::async, [&] { return waiters.tryLock("k", {.waitFor = 20s}); });
  EXPECT_TRUE(user.queued(1));
  held.reset();
  EXPECT_TRUE(next.get());
}

TEST(QueueRights, WithoutARightToItsKeysAContendedLockIsTakenAllTheSame) {
  const RestrictedUser user(std::string(queueRights) + " resetkeys ~k ~{k}:lockkeeper:fence");
  LockManager locks = user.keeper();
  std::atomic<int> taken = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int turn = 0; turn < 20; ++turn) {
          try {
            const Lock held = locks.lock("k", {.waitFor = 20s});
            ++taken;
          } catch (const Error& error) {
            ADD_FAILURE() << error.what();
          }
        }
      });
    }
  }
  EXPECT_EQ(taken, 160);
}

}  // namespace
}  // namespace lockkeeper::test

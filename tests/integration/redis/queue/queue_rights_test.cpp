#include <atomic>
#include <mutex>
#include <thread>

#include "advanced_clock.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/queue.h"
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

  RedisServer server;
  const std::shared_ptr<Notes> notes = std::make_shared<Notes>();
  Environment environment;

  std::shared_ptr<LockDriver> open(const std::string& user, const Environment& its,
                                   const std::string& parameters = {}) const {
    StoreRegistry registry;
    redis::use(registry);
    return registry.open("redis://" + user + "@127.0.0.1:" + std::to_string(server.port()) + parameters, its);
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

/// A driver for the user, whose rights change.
class MissingRights : public ::testing::Test {
 protected:
  MissingRights() : user(std::string(queueRights) + " +publish +subscribe resetchannels &lockkeeper:*") {}

  std::string failureOf(const std::function<void(LockDriver& driver)>& call) const {
    try {
      call(*driver);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return {};
  }
  bool leavesNoKey() const {
    return waitUntil([&] { return user.server.command({"DBSIZE"}) == "0"; });
  }
  std::string failureOfClaim() const {
    return failureOf([&](LockDriver& each) { (void)each.acquire(claimant.request(soon())); });
  }

  const RestrictedUser user;
  const Claimant claimant{.key = "k"};
  const std::shared_ptr<LockDriver> driver = user.open("keeper:let-me-in", {});
  const std::string needed =
      "; locks need +@connection +info +set +get +incr +del +pexpire +pttl +time +eval +evalsha +scan +wait "
      "+exists +zadd +zrange +zrem +zscore +hget +hset +hdel, on its keys and {KEY}:lockkeeper:*";
};

TEST_F(MissingRights, AreNamedBeforeTheFirstClaim) {
  for (const std::string name : {"time", "set", "get", "incr", "del", "pexpire", "pttl", "exists", "zadd",
                                 "zrange", "zrem", "zscore", "hget", "hset", "hdel"}) {
    user.change("-" + name);
    EXPECT_EQ(failureOfClaim(), driver->name() + " does not permit +" + name + needed);
    user.change("+" + name);
    EXPECT_TRUE(leavesNoKey()) << name;
  }
  user.change("-zadd");
  user.change("-hset");
  EXPECT_EQ(failureOfClaim(), driver->name() + " does not permit +zadd +hset" + needed);
  user.change("+zadd");
  user.change("+hset");
  EXPECT_TRUE(granted(driver->acquire(claimant.request(soon())))) << "no driver has to be opened again";
}

TEST_F(MissingRights, ToKeysAndToScriptsAreNamed) {
  for (const std::string keys : {"~k", "~{k}:lockkeeper:*", "~other"}) {
    user.change("resetkeys");
    user.change(keys);
    EXPECT_EQ(failureOfClaim(), driver->name() + " does not permit the key or those beside it" + needed);
  }
  user.change("-eval");
  EXPECT_EQ(failureOfClaim(), driver->name() + " does not permit +eval" + needed);
}

TEST_F(MissingRights, ToTheDigestsOfScriptsAreNamedBeforeALockWithoutAFence) {
  user.change("-evalsha");
  const auto unfenced = user.open("keeper:let-me-in", {}, "?fence=off");
  EXPECT_THROW((void)unfenced->acquire(claimant.request(soon())), ConfigError);
  EXPECT_TRUE(leavesNoKey()) << "its release would be refused";
}

TEST(MissingRightsAfterARestart, AreNamedAgain) {
  RestrictedUser user(queueRights);
  const auto driver = user.open("keeper:let-me-in", {});
  const Claimant claimant{.key = "k"};
  EXPECT_TRUE(granted(driver->acquire(claimant.request(soon()))));
  user.server.restart();
  user.change("-zrem");
  EXPECT_TRUE(waitUntil([&] {
    try {
      (void)driver->acquire(claimant.request(soon()));
    } catch (const ConfigError& error) {
      return std::string(error.what()).find("does not permit +zrem;") != std::string::npos;
    } catch (const Error&) {
      // The connection has ended with the server.
    }
    return false;
  })) << "they were asked for on the former server only";
}

TEST_F(MissingRights, AreNamedByEachKindOfFirstClaim) {
  user.change("-zrem");
  const std::string expected = driver->name() + " does not permit +zrem" + needed;
  AcquireRequest share = claimant.request(soon());
  share.claim.share = Share{.weight = 1, .limit = 2};
  const AcquireRequest whole = claimant.request(soon());
  EXPECT_EQ(failureOf([&](LockDriver& each) { (void)each.acquire(share); }), expected);
  EXPECT_EQ(failureOf([&](LockDriver& each) {
              (void)capability<Batchable>(each)->acquireInOrder({&whole, 1});
            }),
            expected);
  EXPECT_EQ(
      failureOf([&](LockDriver& each) { (void)capability<Waitable>(each)->acquireWaiting(whole, 20s, {}); }),
      expected);
  EXPECT_TRUE(leavesNoKey());
}

TEST_F(MissingRights, ThatWereTakenAwayMeanwhileEndAWaitAndItsPlaceInTheQueue) {
  LockManager holders = user.everybody();
  LockManager waiters = user.keeper();
  const Lock held = holders.lock("k");
  auto next = std::async(std::launch::async, [&] { return waiters.tryLock("k", {.waitFor = 20s}); });
  ASSERT_TRUE(user.queued(1));
  const Instant refused = now();
  user.change("-zscore");
  EXPECT_THROW((void)next.get(), ConfigError);
  EXPECT_TRUE(user.queued(0));
  EXPECT_LT(now() - refused, 8s) << "it did not only die there";
}

}  // namespace
}  // namespace lockkeeper::test

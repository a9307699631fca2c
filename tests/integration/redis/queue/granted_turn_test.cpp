// A release grants the key to the first one in the queue, and the message to it says so.

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "lockkeeper/owner/owner_token.h"
#include "queue/queue_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class GrantedTurn : public RedisQueueTest {
 protected:
  /// Where the only waiter is told something.
  struct Address {
    std::string number;
    std::string channel;
  };
  Address address() const {
    std::istringstream entry(server.command({"HVALS", waitersKey}));
    std::string looks, ttl, kept;
    Address found;
    entry >> looks >> found.number >> ttl >> kept >> found.channel;
    return found;
  }
  /// The waiter looks once more.
  Address nextAddress() const {
    const std::string before = address().number;
    Address found;
    EXPECT_TRUE(waitUntil([&] {
      found = address();
      return !found.channel.empty() && found.number != before;
    }));
    return found;
  }
  std::size_t scripts() const {
    const std::string stats = server.command({"INFO", "commandstats"});
    const std::string name = "cmdstat_evalsha:calls=";
    const std::size_t at = stats.find(name);
    return at == std::string::npos ? 0 : std::stoul(stats.substr(at + name.size()));
  }

  LockManager manager{direct};
};

TEST_F(GrantedTurn, HasTheFenceThatTheReleaseHasDrawnWithoutAnotherRequest) {
  // So that the next one is known, whatever the time.
  const auto ahead = std::chrono::system_clock::now() + 1h;
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(ahead.time_since_epoch());
  server.command({"SET", "{k}:lockkeeper:fence", std::to_string(micros.count())});
  std::optional<Lock> held = manager.lock("k");
  const Fence former = held->fence().value_or(0);
  Member waits = waitAs({.ttl = 10min, .waitFor = 1min}, openRedis(server.port()));
  ASSERT_TRUE(subscribed(1));
  (void)nextAddress();  // so that it does not look for a while
  server.command({"CONFIG", "RESETSTAT"});
  held->release();
  std::optional<Lock> lock = waits.take();
  const std::size_t asked = scripts();
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->fence(), former + 1);
  EXPECT_EQ(asked, 1U) << "the release";
}

TEST_F(GrantedTurn, HasTheTtlThatWasAskedForFromTheBeginning) {
  const LockOptions automatic{.ttl = 10min, .waitFor = 1min};
  const LockOptions manual{.ttl = 10min, .waitFor = 1min, .renew = Renew::manual};
  const LockOptions wideMargin{.ttl = 10min, .waitFor = 1min, .safetyMargin = 5s};
  for (const LockOptions& options : {automatic, manual, wideMargin}) {
    std::optional<Lock> held = manager.lock("k");
    Member waits = waitAs(options, openRedis(server.port()));
    ASSERT_TRUE(subscribed(1));
    (void)nextAddress();
    held.reset();
    std::optional<Lock> lock = waits.take();
    ASSERT_TRUE(lock);
    EXPECT_GT(lock->remaining(), 6min);
    EXPECT_GT(remaining(), 9min);
    EXPECT_EQ(lock->fence(), counter());
    const auto token = waits.manager->ownerToken(*lock);
    ASSERT_TRUE(token);
    LockManager child(withOwner(openRedis(server.port()), {*token}));
    const auto again = child.tryLock("k", {.renew = Renew::manual});
    ASSERT_TRUE(again);
    EXPECT_GT(again->remaining(), 6min) << "for who works for the holder";
    EXPECT_EQ(lock->release(), ReleaseResult::released);
  }
}

TEST_F(GrantedTurn, HasTheTtlThatWasAskedForOfSeveralKeys) {
  std::optional<Lock> held = manager.lock("k");
  LockManager other(openRedis(server.port()));
  std::jthread releaser([&] {
    EXPECT_TRUE(subscribed(1));
    held.reset();
  });
  const auto set = other.lockAll({"a", "k"}, {.ttl = 10min, .waitFor = 1min, .renew = Renew::manual});
  EXPECT_GT(remaining(), 9min);
  EXPECT_GT(set.remaining(), 6min);
}

TEST_F(GrantedTurn, IsGivenByAServerThatIsFull) {
  std::optional<Lock> held = manager.lock("k");
  Member waits = waitAs({.ttl = 10min, .waitFor = 1min}, openRedis(server.port()));
  ASSERT_TRUE(subscribed(1));
  (void)nextAddress();
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  EXPECT_EQ(held->release(), ReleaseResult::released);
  std::optional<Lock> lock = waits.take();
  EXPECT_TRUE(lock && lock->valid());
  EXPECT_GT(remaining(), 9min);
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "0"}), "OK");
}

TEST_F(GrantedTurn, IsNotTakenFromAMessageToAFormerLook) {
  std::optional<Lock> held = manager.lock("k");
  const auto former = held->fence();
  Member waits = wait();
  ASSERT_TRUE(subscribed(1));
  const Address first = address();
  (void)nextAddress();
  // As a process finds it that stood still: its lease has ended, and somebody else has the key.
  ASSERT_EQ(server.command({"PUBLISH", first.channel, first.number + " grant 7"}), "1");
  (void)nextAddress();
  EXPECT_EQ(waits.lock.wait_for(0s), std::future_status::timeout);
  held.reset();
  const std::optional<Lock> lock = waits.take();
  ASSERT_TRUE(lock);
  EXPECT_GT(lock->fence(), former);
}

TEST_F(GrantedTurn, ThatIsHeardOfLateIsRenewedFirst) {
  std::optional<Lock> held = manager.lock("k");
  const Process late = process("late", 1, 60s);  // its ttl is two seconds
  ASSERT_TRUE(subscribed(1));
  late.pause();
  EXPECT_EQ(held->release(), ReleaseResult::released);
  const std::uint64_t granted = counter();
  std::this_thread::sleep_for(1s);
  server.command({"CONFIG", "RESETSTAT"});
  late.resume();
  ASSERT_TRUE(waitUntil([&] { return journaled("in late "); }));
  EXPECT_GE(scripts(), 1U);
  // On a machine that stands still, the lease has ended by then.
  EXPECT_TRUE(journaled("in late " + std::to_string(granted)) || counter() > granted);
}

TEST_F(GrantedTurn, HasAFenceIfItsHolderWantsOneWhoeverReleases) {
  for (const auto& [releaser, waiter] : {std::pair{"fence=on", "fence=on"},
                                         {"fence=off", "fence=on"},
                                         {"fence=on", "fence=off"},
                                         {"fence=off", "fence=off"}}) {
    SCOPED_TRACE(std::string(releaser) + " then " + waiter);
    const std::uint64_t before = [&] {
      const Lock first = manager.lock("k");
      return *first.fence();
    }();
    LockManager holders(openRedis(server.port(), releaser));
    std::optional<Lock> held = holders.lock("k");
    Member waits = wait(waiter);
    ASSERT_TRUE(subscribed(1));
    held.reset();
    std::optional<Lock> lock = waits.take();
    ASSERT_TRUE(lock);
    EXPECT_EQ(lock->fence().has_value(), std::string(waiter) == "fence=on");
    if (lock->fence()) {
      EXPECT_GT(*lock->fence(), before);
      EXPECT_EQ(*lock->fence(), counter());
    }
  }
}

}  // namespace
}  // namespace lockkeeper::test

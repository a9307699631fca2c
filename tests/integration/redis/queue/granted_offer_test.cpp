// An offer is a lease of a second: who is told of it has the key, without asking the server again.

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "lockkeeper/owner/owner_token.h"
#include "lockkeeper/testing/best_of_three.h"
#include "queue/queue_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using lockkeeper::testing::BestOfThree;

class GrantedOffer : public RedisQueueTest {
 protected:
  /// Where the only waiter is told something.
  struct Address {
    std::string number;
    std::string channel;
  };
  Address address() const {
    std::istringstream entry(server.command({"HVALS", waitersKey}));
    std::string looks;
    Address found;
    entry >> looks >> found.number >> found.channel;
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
  bool isOffer() const { return value().ends_with("@"); }

  LockManager manager{direct};
};

TEST_F(GrantedOffer, AMessageGrantsTheKeyWithTheFenceThatTheReleaseHasDrawn) {
  // So that the next one is known, whatever the time.
  const auto ahead = std::chrono::system_clock::now() + 1h;
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(ahead.time_since_epoch());
  server.command({"SET", "{k}:lockkeeper:fence", std::to_string(micros.count())});
  for (BestOfThree rounds("a second one is drawn for who asks for a grant"); rounds.next();) {
    std::optional<Lock> held = manager.lock("k");
    const Fence former = held->fence().value_or(0);
    Member waits = wait();
    ASSERT_TRUE(subscribed(1));
    (void)nextAddress();  // so that it does not look for a while
    held.reset();
    std::optional<Lock> lock = waits.take();
    ASSERT_TRUE(lock);
    EXPECT_GT(lock->fence(), former);
    rounds.end(lock->fence() == former + 1);
  }
}

TEST_F(GrantedOffer, IsRenewedOnAServerThatIsFull) {
  for (BestOfThree rounds("it is renewed before it ends"); rounds.next();) {
    std::optional<Lock> held = manager.lock("k");
    Member waits = waitAs({.ttl = 10min, .waitFor = 1min}, openRedis(server.port()));
    ASSERT_TRUE(subscribed(1));
    (void)nextAddress();
    ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    held.reset();
    bool isRenewed = false;
    // Who looks at a full server hears that it is full.
    if (waits.lock.wait_for(2s) == std::future_status::ready) {
      std::optional<Lock> lock = waits.take();
      isRenewed = lock && waitUntil([&] { return remaining() > 5min || !lock->valid(); }) && lock->valid();
    }
    ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "0"}), "OK");
    if (waits.lock.valid()) (void)waits.take();
    rounds.end(isRenewed);
  }
}

TEST_F(GrantedOffer, ALongHoldHasAFullLeaseSoon) {
  for (BestOfThree rounds("it is renewed before it ends"); rounds.next();) {
    std::optional<Lock> held = manager.lock("k");
    Member waits = waitAs({.ttl = 10min, .waitFor = 1min}, openRedis(server.port()));
    ASSERT_TRUE(subscribed(1));
    held.reset();
    std::optional<Lock> lock = waits.take();
    ASSERT_TRUE(lock);
    EXPECT_TRUE(waitUntil([&] { return remaining() > 5min || !lock->valid(); }));
    const bool isRenewed = lock->valid();
    rounds.end(isRenewed);
    if (!isRenewed) continue;
    EXPECT_FALSE(isOffer());
    EXPECT_EQ(lock->fence(), counter());
    EXPECT_EQ(lock->release(), ReleaseResult::released);
  }
}

TEST_F(GrantedOffer, WhoNeedsAFullLeaseAsksForIt) {
  const LockOptions manual{.ttl = 10min, .waitFor = 1min, .renew = Renew::manual};
  const LockOptions wideMargin{.ttl = 10min, .waitFor = 1min, .safetyMargin = 5s};
  for (const LockOptions& options : {manual, wideMargin}) {
    std::optional<Lock> held = manager.lock("k");
    Member waits = waitAs(options, openRedis(server.port()));
    ASSERT_TRUE(subscribed(1));
    held.reset();
    std::optional<Lock> lock = waits.take();
    ASSERT_TRUE(lock);
    EXPECT_GT(remaining(), 5min);
    EXPECT_FALSE(isOffer());
    EXPECT_EQ(lock->release(), ReleaseResult::released);
  }
}

TEST_F(GrantedOffer, OfSeveralKeysThatAreNotRenewedEachHasAFullLease) {
  std::optional<Lock> held = manager.lock("k");
  LockManager other(openRedis(server.port()));
  std::jthread releaser([&] {
    EXPECT_TRUE(subscribed(1));
    held.reset();
  });
  auto set = other.lockAll({"a", "k"}, {.ttl = 10min, .waitFor = 1min, .renew = Renew::manual});
  EXPECT_GT(remaining(), 5min);
  EXPECT_FALSE(isOffer());
}

TEST_F(GrantedOffer, WhoWorksForTheHolderHasAFullLeaseFromTheBeginning) {
  for (BestOfThree rounds("it is passed on before it ends"); rounds.next();) {
    std::optional<Lock> held = manager.lock("k");
    Member waits = waitAs({.ttl = 10min, .waitFor = 1min}, openRedis(server.port()));
    ASSERT_TRUE(subscribed(1));
    (void)nextAddress();
    held.reset();
    const std::optional<Lock> lock = waits.take();
    ASSERT_TRUE(lock);
    const auto token = waits.manager->ownerToken(*lock);
    rounds.end(token.has_value());
    if (!token) continue;
    LockManager child(withOwner(openRedis(server.port()), {*token}));
    const auto again = child.tryLock("k", {.renew = Renew::manual});
    ASSERT_TRUE(again);
    EXPECT_GT(again->remaining(), 5min);
  }
}

TEST_F(GrantedOffer, AnOfferToAFormerLookIsNoGrant) {
  std::optional<Lock> held = manager.lock("k");
  const auto former = held->fence();
  Member waits = wait();
  ASSERT_TRUE(subscribed(1));
  const Address first = address();
  (void)nextAddress();
  // As a process finds it that stood still: the offer has lapsed, and somebody else has the key.
  ASSERT_EQ(server.command({"PUBLISH", first.channel, first.number + " fence 7"}), "1");
  (void)nextAddress();
  EXPECT_EQ(waits.lock.wait_for(0s), std::future_status::timeout);
  held.reset();
  const std::optional<Lock> lock = waits.take();
  ASSERT_TRUE(lock);
  EXPECT_GT(lock->fence(), former);
}

TEST_F(GrantedOffer, AnOfferThatIsHeardLateIsAskedFor) {
  std::optional<Lock> held = manager.lock("k");
  const Process late = process("late", 1, 60s);
  ASSERT_TRUE(subscribed(1));
  late.pause();
  EXPECT_EQ(held->release(), ReleaseResult::released);
  const std::uint64_t offered = counter();
  std::this_thread::sleep_for(600ms);  // more than half of what it is offered for
  late.resume();
  ASSERT_TRUE(waitUntil([&] { return journaled("in late "); }));
  EXPECT_FALSE(journaled("in late " + std::to_string(offered)));
}

TEST_F(GrantedOffer, ItsFenceIsThatOfWhoReleasesOrOneThatIsAskedFor) {
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

#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "queue/queue_fixture.h"

// What becomes of a queue that the server refuses to change, or whose keys hold something else.

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class QueueRefusal : public RedisQueueTest {
 protected:
  /// Puts one that has died and one that nobody listens for ahead of everybody.
  void addLostWaiters() const {
    ASSERT_EQ(server.command({"ZADD", queueKey, "1", "dead", "2", "unreachable"}), "2");
    ASSERT_EQ(server.command({"HSET", waitersKey, "dead", "1 1 1000 0 gone", "unreachable",
                              "9999999999999 1 1000 0 gone"}),
              "2");
  }
  Breakable& breakable() const { return *capability<Breakable>(*direct); }
};

TEST_F(QueueRefusal, AReleaseEndsWhereTooFewReplicasAreThere) {
  LockManager manager(direct);
  Lock held = manager.lock("k");
  addLostWaiters();
  ASSERT_EQ(server.command({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
  EXPECT_EQ(held.release(), ReleaseResult::unavailable);
  EXPECT_EQ(server.command({"PING"}), "PONG");
  ASSERT_EQ(server.command({"CONFIG", "SET", "min-replicas-to-write", "0"}), "OK");
  EXPECT_TRUE(waitUntil([&] { return isFree("k"); })) << "core asks again";
}

TEST_F(QueueRefusal, WaitersThatNoMessageReachesAreOfferedNothing) {
  LockManager manager(direct);
  Lock held = manager.lock("k");
  addLostWaiters();
  server.command({"CONFIG", "RESETSTAT"});
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_TRUE(isFree("k"));
  EXPECT_EQ(queued(), 0U);
  // They may listen elsewhere: at a replica, or at another node of a cluster.
  EXPECT_EQ(server.command({"INFO", "commandstats"}).find("cmdstat_publish:"), std::string::npos);

  held = manager.lock("k");
  addLostWaiters();
  EXPECT_TRUE(breakable().breakLock("k", soon()));
  EXPECT_TRUE(isFree("k"));
}

TEST_F(QueueRefusal, AGrantThatWasGivenBackForWantOfReplicasHasLeftTheQueue) {
  StoreRegistry registry;
  redis::use(registry);
  const auto careful = registry.open(server.uri() + "?minReplicas=1&replicaTimeout=10ms");
  const Claimant claimant{.key = "k"};
  AcquireRequest request = claimant.request(soon());
  for (const bool ahead : {false, true}) {
    request.ahead = ahead;
    EXPECT_THROW((void)capability<Waitable>(*careful)->acquireWaiting(request, 1s, {}), StoreUnavailable);
    EXPECT_TRUE(isFree("k"));
  }
}

TEST_F(QueueRefusal, AReleaseEndsOnAReplica) {
  LockManager manager(direct);
  Lock held = manager.lock("k");
  addLostWaiters();
  ASSERT_EQ(server.command({"REPLICAOF", "127.0.0.1", "1"}), "OK");
  EXPECT_EQ(held.release(), ReleaseResult::unavailable);
  EXPECT_EQ(server.command({"PING"}), "PONG");
}

TEST_F(QueueRefusal, ABreakEndsWhereTooFewReplicasAreThere) {
  ASSERT_EQ(server.command({"LPUSH", "k", "another type"}), "1");
  addLostWaiters();
  ASSERT_EQ(server.command({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
  EXPECT_THROW(breakable().breakLock("k", soon()), StoreUnavailable);
  EXPECT_EQ(server.command({"PING"}), "PONG");
}

TEST_F(QueueRefusal, AGrantThatTooFewReplicasHaveIsGivenBackToTheNext) {
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k");
  Member first = wait("minReplicas=1&replicaTimeout=50ms", 4s);
  ASSERT_TRUE(subscribed(1));
  Member second = wait();
  ASSERT_TRUE(subscribed(2));
  held.reset();
  EXPECT_TRUE(second.take(3s));
  EXPECT_THROW(first.take(), StoreUnavailable);
}

TEST_F(QueueRefusal, OneCallTakesOutAHundredEntriesAtMost) {
  for (int i = 0; i < 450; ++i) {
    ASSERT_EQ(server.command({"ZADD", queueKey, "1", "dead" + std::to_string(i)}), "1");
  }
  LockManager manager(direct);
  std::optional<Lock> held = manager.lock("k");
  ASSERT_EQ(held->release(), ReleaseResult::released);
  EXPECT_EQ(queued(), 350U);
  EXPECT_TRUE(isFree("k"));
  held = manager.lock("k");
  Member waits = wait();
  ASSERT_TRUE(queued(1)) << "a look that has not come to the end is repeated";
  held.reset();
  EXPECT_TRUE(waits.take());
}

TEST_F(QueueRefusal, KeysOfAnotherTypeAreNoQueue) {
  for (const char* key : {queueKey, waitersKey}) {
    LockManager manager(direct);
    std::optional<Lock> held = manager.lock("k");
    if (key == waitersKey) addLostWaiters();
    server.command({"DEL", key});
    ASSERT_EQ(server.command({"SET", key, "another type"}), "OK");
    Member waits = wait();
    EXPECT_EQ(waits.lock.wait_for(100ms), std::future_status::timeout);
    EXPECT_EQ(held->release(), ReleaseResult::released) << key;
    std::optional<Lock> next = waits.take();
    ASSERT_TRUE(next) << key;
    EXPECT_TRUE(breakable().breakLock("k", soon())) << key;
    EXPECT_TRUE(isFree("k"));
    EXPECT_EQ(server.command({"GET", key}), "another type");
    server.command({"DEL", queueKey, waitersKey});
  }
}

}  // namespace
}  // namespace lockkeeper::test

#include <array>

#include "database_server.h"
#include "etcd_cluster.h"
#include "live_fleet.h"
#ifdef LOCKKEEPER_WITH_POSTGRES
#include "postgres_server.h"
#endif
#include "redis_cluster.h"
#include "redlock_uri.h"
#include "sentinel_group.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Fleets that move between stores of different kinds.
class OtherStores : public LiveFleet {
 protected:
  /// On the old store.
  std::string foreignClient(const std::vector<std::string>& words) const {
    std::vector<std::string> line{"redis-cli", "-p", std::to_string(redis.port()), "-n", "1"};
    line.insert(line.end(), words.begin(), words.end());
    return runToEnd(line).output;
  }

  /// There and back, with processes at work. The state is in `redis`.
  void move(const std::string& from, const std::string& to) {
    configure(from, to, "lockkeeper.migration.stateStore = " + newUri() + "\n");
    const Processes fleet = start(4, {MIGRATING_WORKER, from, to, newUri(), folder.path()});
    ASSERT_TRUE(statusSays("current:   legacy")) << status() << errors();
    ASSERT_NO_FATAL_FAILURE(takeStep("order:* = both", "order:* = both, * = legacy"));
    ASSERT_NO_FATAL_FAILURE(takeStep("both", "both"));
    ASSERT_NO_FATAL_FAILURE(takeStep("50% = modern", "50% = modern, * = both"));
    ASSERT_NO_FATAL_FAILURE(takeStep("modern", "modern"));
    // A claim by GET_LOCK is a stranger's until its label is written, which is looked for some 60 ms long.
    const bool labelledInTime = !from.starts_with("mysql+getlock") || stalls.longest() < 20ms;
    if (labelledInTime) {
      EXPECT_TRUE(statusSays("last legacy sighting: none")) << "they know each other: " << status();
    }
    ASSERT_NO_FATAL_FAILURE(takeStep("both", "both"));
    ASSERT_NO_FATAL_FAILURE(takeStep("legacy", "legacy"));
    const Work work = finish(fleet, "stop");
    EXPECT_EQ(counted(), work.count);
    EXPECT_EQ(errors(), "");
    // etcd counts a lease in whole seconds.
    const milliseconds rounded = (from + to).find("etcd://") == std::string::npos ? 0s : 1s;
    EXPECT_LE(work.longestStop, longestStopAllowed() + rounded);
  }
};

TEST_F(OtherStores, MovesFromOneRedisToRedlock) {
  const std::array<RedisServer, 3> nodes;
  move(oldUri(), redlockUri(nodes, "restartGuard=off"));
}

TEST_F(OtherStores, MovesFromAMasterOfSentinelsToARedisCluster) {
  const SentinelGroup sentinels;
  const RedisCluster cluster(3, 0);
  move(sentinels.uri(), cluster.uri());
}

TEST_F(OtherStores, AHolderThatIsNoClientOfOursKeepsItsKeyFromLeavingOneRedis) {
  ASSERT_EQ(foreignClient({"SET", "order:theirs", "foreign"}), "OK\n");
  ASSERT_EQ(foreignClient({"HSET", "other:theirs", "holder", "1"}), "1\n");
  const Processes fleet =
      start(1, {LOCKKEEPER_COMMAND, "run", "--config", configuration, "ours", "--", "sleep", "200"});
  ASSERT_TRUE(statusSays("current:   legacy")) << status() << errors();
  advance("both");
  ASSERT_TRUE(statusSays("current:   both")) << status() << errors();
  advance("order:* = modern");
  EXPECT_TRUE(
      statusSays("a holder that is no member was seen in the old store, of 'order:theirs': stop it, "
                 "or delete the key if what it holds is no lock"))
      << status();
  ASSERT_EQ(foreignClient({"DEL", "order:theirs"}), "1\n");
  EXPECT_TRUE(statusSays("current:   order:* = modern, * = both")) << status();
  advance("modern");
  EXPECT_TRUE(statusSays("of 'other:theirs'")) << status();
}

TEST_F(OtherStores, AStoreThatCannotKeepTheStateSaysWhatToConfigure) {
  configure(oldUri(), "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3?restartGuard=off");
  const Finished finished = lockkeeper({"migrate", "status"});
  EXPECT_EQ(finished.exitCode, 78);
  EXPECT_NE(finished.errors.find("the store redlock://"), std::string::npos) << finished.errors;
  EXPECT_NE(finished.errors.find("migration.stateStore"), std::string::npos) << finished.errors;
}

#ifdef LOCKKEEPER_WITH_ETCD
TEST_F(OtherStores, MovesFromOneRedisToEtcdAndBack) {
  const EtcdCluster cluster;
  move(oldUri(), cluster.uri() + "?ioTimeout=2s");
}
#endif

#ifdef LOCKKEEPER_WITH_POSTGRES
TEST_F(OtherStores, MovesFromPostgresToRedis) {
  PostgresServer server;
  server.makeLocks();
  move(server.uri("postgres+version"), oldUri());
}
#endif

#ifdef LOCKKEEPER_WITH_MYSQL
TEST_F(OtherStores, MovesFromGetLockToRedis) {
  DatabaseServer server(Brand::mariadb);
  const std::string uri = server.uri(server.newDatabase());
  move("mysql+getlock" + uri.substr(uri.find("://")) + "?createTable=true", oldUri());
}
#endif

}  // namespace
}  // namespace lockkeeper::test

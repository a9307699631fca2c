// `lockkeeper run` while the server that has its lock dies.

#include <string>

#include "cli_fixture.h"
#include "command_under_lock.h"
#include "redis_cluster.h"
#include "sentinel_group.h"

namespace lockkeeper::test {
namespace {

TEST(CommandThroughFailover, OutlivesAMasterThatSentinelsReplace) {
  SentinelGroup group;
  expectOutlives(group.uri(), "nightly", [&] {
    for (std::size_t replica = 1; replica < group.size(); ++replica) {
      EXPECT_TRUE(waitUntil([&] { return group.server(replica).command({"EXISTS", "nightly"}) == "1"; }));
    }
    group.first().kill();
    (void)group.awaitFailover();
  });
}

TEST(CommandThroughFailover, OutlivesAMasterOfACluster) {
  RedisCluster cluster;
  const std::string key = cluster.keyAt(0, "nightly");
  expectOutlives(cluster.uri(), key, [&] {
    cluster.awaitReplicas(0);
    cluster.kill(0);
  });
}

}  // namespace
}  // namespace lockkeeper::test

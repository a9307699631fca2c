#include "lockkeeper/redis/cluster_options.h"

#include <gtest/gtest.h>

#include "lockkeeper/error.h"
#include "refusal.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;
using test::refusalOf;

ClusterOptions clusterOptions(const std::string& uri) {
  return ClusterOptions::fromUri(StoreUri::parse(uri));
}

std::string clusterFault(const std::string& uri) {
  return refusalOf<ConfigError>([&] { clusterOptions(uri); });
}

TEST(ClusterOptions, OneLoginAndSettingsForAllNodes) {
  const ClusterOptions options =
      clusterOptions("redis+cluster://ann:s3cr3t@a,b:7000,[::1]:7001/0?minReplicas=1&ioTimeout=3s&fence=off");
  ASSERT_EQ(options.seeds.size(), 3U);
  EXPECT_EQ(options.seeds[0].host, "a");
  EXPECT_EQ(options.seeds[0].port, 6379);
  EXPECT_EQ(options.seeds[2].host, "::1");
  EXPECT_EQ(options.node.user, "ann");
  EXPECT_EQ(options.node.password, "s3cr3t");
  EXPECT_EQ(options.node.minReplicas, 1U);
  EXPECT_EQ(options.node.ioTimeout, 3s);
  EXPECT_FALSE(options.node.fence);
  EXPECT_FALSE(options.node.tls);
  EXPECT_EQ(options.display(), "redis+cluster://a:6379,b:7000,[::1]:7001");
}

TEST(ClusterOptions, RefusesWhatAClusterCannotHave) {
  const auto says = [](const std::string& uri, const std::string& part) {
    const std::string fault = clusterFault(uri);
    EXPECT_NE(fault.find(part), std::string::npos) << uri << ": " << fault;
    EXPECT_EQ(fault.find("s3cr3t"), std::string::npos) << fault;
  };
  says("redis+cluster://:s3cr3t@a,b/3", "the database is 3: a Redis Cluster has only database 0");
  says("redis+cluster://a,b/zero", "zero");
  says("redis+cluster://a,b,a:6379", "a:6379 is named twice");
  says("redis+cluster://a,:s3cr3t@b", "one login");
  says("redis+cluster://a:0", "port");
  says("redis+cluster://:s3cr3t@a?caFile=/etc/ssl/certs/ca-certificates.crt", "tls");
  says("redis+cluster://a?db=1", "db");
  says("redis+cluster://ann@a", "without a password");
  EXPECT_EQ(clusterFault("redis+cluster://a"), "accepted");
  EXPECT_EQ(clusterFault("redis+cluster://a/"), "accepted");
}

}  // namespace
}  // namespace lockkeeper::redis

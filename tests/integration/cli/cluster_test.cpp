#include <algorithm>
#include <string>
#include <vector>

#include "cli_fixture.h"
#include "redis_cluster.h"

namespace lockkeeper::test {
namespace {

/// The command on a Redis Cluster; CommandTest's own server is no part of it.
using ClusterCommand = CommandTest;

TEST_F(ClusterCommand, DoesAllByTheUriAlone) {
  RedisCluster cluster(3, 0);
  const std::string store = cluster.uri();
  const auto ask = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, {"--store", store});
    return lockkeeper(arguments);
  };
  std::vector<Process> holders;
  for (std::size_t node = 0; node < 3; ++node) {
    const std::string key = cluster.keyAt(node, "k" + std::to_string(node) + "-");
    holders.push_back(start({"run", "--store", store, key, "--", "sleep", "100"}));
    EXPECT_TRUE(waitUntil([&] {
      return ask({"show", key}).output.find("OWNER") != std::string::npos;
    })) << ask({"show", key}).output
        << ask({"show", key}).errors;
    EXPECT_EQ(ask({"run", "--wait", "0s", key, "--", "true"}).exitCode, 75);
  }
  const Finished list = ask({"list"});
  EXPECT_EQ(list.exitCode, 0) << list.errors;
  EXPECT_EQ(std::count(list.output.begin(), list.output.end(), '\n'), 4)
      << list.output << "a head and three locks";
  const std::string first = cluster.keyAt(0, "k0-");
  EXPECT_EQ(ask({"break", first, "--yes"}).exitCode, 0);
  EXPECT_EQ(ask({"run", first, "--", "true"}).exitCode, 0);
  EXPECT_EQ(ask({"limit", "--rate", "1/day", "sms:7"}).exitCode, 0);
  EXPECT_EQ(ask({"limit", "--rate", "1/day", "sms:7"}).exitCode, 75);
}

TEST_F(ClusterCommand, SaysInOneLineWhatIsWrongWithTheUri) {
  const RedisServer alone(RedisOptions{.cluster = true});
  const std::string node = "127.0.0.1:" + std::to_string(alone.port());
  const auto refuses = [&](const std::string& uri, int code, const std::string& part) {
    const Finished finished = lockkeeper({"show", "--store", uri, "k"});
    EXPECT_EQ(finished.exitCode, code) << finished.errors;
    EXPECT_NE(finished.errors.find(part), std::string::npos) << finished.errors;
    EXPECT_EQ(std::count(finished.errors.begin(), finished.errors.end(), '\n'), 1) << finished.errors;
    EXPECT_EQ(finished.errors.find("s3cr3t"), std::string::npos) << finished.errors;
  };
  refuses("redis://" + node, 78, "write redis+cluster://" + node);
  refuses("redis+cluster://" + node, 78, "is a cluster node alone");
  refuses("redis+cluster://127.0.0.1:" + std::to_string(redis.port()), 78, "write redis://127.0.0.1");
  refuses("redis+cluster://:s3cr3t@" + node + "/2", 78, "a Redis Cluster has only database 0");
  refuses("redis+cluster://127.0.0.1:1,127.0.0.1:2", 69, "no node can be reached");
}

}  // namespace
}  // namespace lockkeeper::test

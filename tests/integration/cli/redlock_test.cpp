#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "cli_fixture.h"
#include "redlock_uri.h"

namespace lockkeeper::test {
namespace {

/// The command on five nodes; CommandTest's own server is none of them.
class RedlockCommand : public CommandTest {
 protected:
  static std::string at(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

  std::string store(const std::string& query = "restartGuard=off") const { return redlockUri(nodes, query); }

  std::array<RedisServer, 5> nodes;
};

TEST_F(RedlockCommand, RunWorksWithTwoNodesDead) {
  nodes[0].kill();
  nodes[3].kill();
  const Finished finished = lockkeeper({"run", "--store", store(), "k", "--", "echo", "ran"});
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  EXPECT_EQ(finished.output, "ran\n");
  for (const std::size_t node : {1U, 2U, 4U}) {
    EXPECT_TRUE(waitUntil([&] { return nodes[node].command({"EXISTS", "k"}) == "0"; }));
  }
}

TEST_F(RedlockCommand, RunWorksWithTwoNodesStopped) {
  nodes[1].pause();
  nodes[2].pause();
  const Finished finished = lockkeeper({"run", "--store", store(), "--ttl", "5s", "k", "--", "echo", "ran"});
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  EXPECT_EQ(finished.output, "ran\n");
}

TEST_F(RedlockCommand, RunSaysWhichNodesAreMissingWhenThreeAreDead) {
  for (const std::size_t node : {0U, 1U, 2U}) nodes[node].kill();
  const Finished finished = lockkeeper({"run", "--store", store(), "k", "--", "touch", file("started")});
  EXPECT_EQ(finished.exitCode, 69) << finished.errors;
  for (const std::size_t node : {0U, 1U, 2U}) {
    EXPECT_NE(finished.errors.find(at(nodes[node].port())), std::string::npos) << finished.errors;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "started"));
}

TEST_F(RedlockCommand, RunWaitsUntilTheNodesMayVote) {
  const Finished young =
      lockkeeper({"run", "--store", store("restartGuard=1h"), "k", "--", "touch", file("started")});
  EXPECT_EQ(young.exitCode, 69);
  EXPECT_NE(young.errors.find("votes in"), std::string::npos) << young.errors;
  EXPECT_FALSE(std::filesystem::exists(folder / "started"));
  const Finished waited = lockkeeper(
      {"run", "--store", store("restartGuard=2s"), "--ttl", "2s", "--wait", "1m", "k", "--", "echo", "ran"});
  EXPECT_EQ(waited.output, "ran\n") << waited.errors;
}

TEST_F(RedlockCommand, ShowPrintsWhatEachNodeSays) {
  Process holder = start({"run", "--store", store(), "--ttl", "50s", "k", "--", "sh", "-c",
                          "touch " + file("up") + "; exec sleep 60"});
  ASSERT_TRUE(fileAppears("up"));
  ASSERT_TRUE(waitUntil([&] { return nodes[4].command({"DEL", "k"}) == "1"; }));
  nodes[1].kill();
  const Finished shown = lockkeeper({"show", "--store", store(), "k"});
  EXPECT_EQ(shown.exitCode, 0) << shown.errors;
  std::vector<std::string> lines;
  std::istringstream text(shown.output);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 9U) << shown.output;
  const std::string held = "held by ";
  EXPECT_NE(lines[1].find(":" + std::to_string(holder.pid())), std::string::npos) << shown.output;
  EXPECT_EQ(lines[3].find("NODE "), 0U) << shown.output;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    EXPECT_EQ(lines[4 + node].find("redis://" + at(nodes[node].port())), 0U) << shown.output;
  }
  EXPECT_NE(lines[4].find(held), std::string::npos) << shown.output;
  EXPECT_NE(lines[5].find("cannot be reached"), std::string::npos) << shown.output;
  EXPECT_NE(lines[8].find("free"), std::string::npos) << shown.output;
  const std::string value = nodes[0].command({"GET", "k"});
  EXPECT_EQ(shown.output.find(value.substr(0, 32)), std::string::npos) << "the token is secret";
}

TEST_F(RedlockCommand, BreakFreesTheKeyOnAllNodes) {
  for (const RedisServer& node : nodes) ASSERT_EQ(node.command({"SET", "k", "foreign"}), "OK");
  EXPECT_EQ(lockkeeper({"break", "--yes", "--store", store(), "k"}).exitCode, 0);
  for (const RedisServer& node : nodes) EXPECT_EQ(node.command({"EXISTS", "k"}), "0");
}

/// One line that names the mistake, the right exit code, no secret, and the command was not started.
class RedlockMistakes : public RedlockCommand {
 protected:
  void refuses(const std::string& uri, int exitCode, const std::string& named) {
    SCOPED_TRACE(uri);
    const Finished finished = lockkeeper({"run", "--store", uri, "k", "--", "touch", file("started")});
    EXPECT_EQ(finished.exitCode, exitCode) << finished.errors;
    EXPECT_EQ(std::count(finished.errors.begin(), finished.errors.end(), '\n'), 1) << finished.errors;
    EXPECT_NE(finished.errors.find(named), std::string::npos)
        << finished.errors << " does not name " << named;
    EXPECT_EQ(finished.errors.find("s3cr3t"), std::string::npos) << finished.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "started"));
  }
};

TEST_F(RedlockMistakes, InTheUri) {
  refuses("redlock://", 78, "0 nodes");
  refuses("redlock://:s3cr3t@a,b", 78, "2 nodes");
  refuses("redlock://a:1,:s3cr3t@b:2,a:1", 78, "a:1 twice");
  refuses("redlock://a,b,a:6379", 78, "a:6379 twice");
  refuses("redlock://:s3cr3t@a,b,c?restartguard=off", 78, "restartguard");
  refuses("redlock://a,b,c?restartGuard=10ms", 78, "10ms");
  refuses("redlock://a,b,c?drift=99", 78, "99");
  refuses("redlock://a,b,c?appendfsync=everysec", 78, "everysec");
  refuses("redlock://a,b,c?caFile=/etc/ssl/certs/ca-certificates.crt", 78, "tls=on");
  refuses("redlock://a,b,c?fenceStore=nosql%3A%2F%2F%3As3cr3t%40db%2Fshop", 78, "nosql");
}

TEST_F(RedlockMistakes, InTheCredentialsOfOneNode) {
  nodes[2].command({"CONFIG", "SET", "requirepass", "s3cr3t-right"});
  const auto uri = [&](const std::string& login) {
    return "redlock://" + at(nodes[0].port()) + "," + at(nodes[1].port()) + "," + login +
           at(nodes[2].port()) + "?restartGuard=off";
  };
  refuses(uri(":s3cr3t-wrong@"), 78, at(nodes[2].port()));
  refuses(uri(""), 78, at(nodes[2].port()));
  EXPECT_EQ(lockkeeper({"run", "--store", uri(":s3cr3t-right@"), "k", "--", "true"}).exitCode, 0);
}

TEST_F(RedlockMistakes, InTheNamesOfTheNodes) {
  refuses("redlock://no-such-host.invalid," + at(nodes[0].port()) + ",neither-this.invalid?restartGuard=off",
          69, "no-such-host.invalid");
  const Finished oneGone = lockkeeper({"run", "--store",
                                       "redlock://" + at(nodes[0].port()) + ",no-such-host.invalid," +
                                           at(nodes[1].port()) + "?restartGuard=off",
                                       "k", "--", "echo", "ran"});
  EXPECT_EQ(oneGone.output, "ran\n") << oneGone.errors;
}

TEST_F(RedlockMistakes, ATtlThatIsLongerThanTheGuard) {
  const Finished finished = lockkeeper(
      {"run", "--store", store("restartGuard=10s"), "--ttl", "11s", "k", "--", "touch", file("started")});
  EXPECT_EQ(finished.exitCode, 64) << finished.errors;
  EXPECT_NE(finished.errors.find("restartGuard"), std::string::npos) << finished.errors;
}

}  // namespace
}  // namespace lockkeeper::test

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lockkeeper/redis/cluster_options.h"
#include "lockkeeper/redis/redis_driver.h"
#include "wire/scripted_server.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

/// Two nodes of a cluster: all slots are on the first one until they have moved to the second one.
class FormerMaster : public ::testing::Test {
 protected:
  void serve(ScriptedServer::Peer& peer) const {
    while (true) {
      const std::vector<std::string> words = peer.command();
      if (words[0] == "INFO") {
        peer.say(bulk(goodInfo + "cluster_enabled:1\r\n"));
      } else if (words[0] == "CLUSTER" && words[1] == "INFO") {
        peer.say(bulk("cluster_current_epoch:" + std::string(moved ? "2" : "1") +
                      "\r\ncluster_known_nodes:2\r\n"));
      } else if (words[0] == "CLUSTER") {
        peer.say("*1\r\n*4\r\n:0\r\n:16383\r\n" + entry(moved ? second : first) +
                 entry(moved ? first : second));
      } else if (words[0] == "EVAL") {
        peer.say("*0\r\n");  // no right is missing
      } else if (words[0] == "SCAN") {
        peer.say("*2\r\n" + bulk("0") + "*0\r\n");
      } else if (words[0] != "EVALSHA") {
        peer.say("+OK\r\n");
      } else if (!silent) {
        peer.say(":1\r\n");
      }
    }
  }
  static std::string entry(const ScriptedServer& node) {
    return "*3\r\n" + bulk("127.0.0.1") + ":" + std::to_string(node.port()) + "\r\n" +
           bulk(std::to_string(node.port()));
  }
  static Instant soon() { return systemClock()->now() + 10s; }

  struct Outcome final : PostListener {
    void answered(ReleaseOutcome) noexcept override { told = true; }
    void failed(ErrorCode, std::string_view) noexcept override { told = true; }
    std::atomic<bool> told = false;
  };

  std::atomic<bool> moved = false;
  std::atomic<bool> silent = false;
  const ScriptedServer first{[this](ScriptedServer::Peer& peer, int) { serve(peer); }};
  const ScriptedServer second{[this](ScriptedServer::Peer& peer, int) { serve(peer); }};
};

TEST_F(FormerMaster, ThatDoesNotAnswerAReleaseHoldsUpNobodyElse) {
  ClusterOptions options{.seeds = {{"127.0.0.1", first.port()}}, .node = {}};
  options.node.fence = false;
  options.node.ioTimeout = 3s;
  RedisDriver driver(options);
  const Claim claim{.key = "k", .token = Token::generate(*systemRandom()), .owner = "test"};
  ASSERT_TRUE(
      std::holds_alternative<Granted>(driver.acquire({.claim = claim, .ttl = 1min, .deadline = soon()})));
  ASSERT_EQ(driver.release(claim, soon()), ReleaseOutcome::released);
  silent = true;
  const auto outcome = std::make_shared<Outcome>();
  ASSERT_TRUE(driver.postRelease(claim, outcome));
  moved = true;
  std::this_thread::sleep_for(600ms);  // the map is read twice a second at most
  driver.list(
      "", [](std::string_view, const Holder&) { return true; }, soon());
  EXPECT_FALSE(outcome->told) << "the release was waited for";
  driver.awaitPosted(soon());
  EXPECT_TRUE(outcome->told);
}

}  // namespace
}  // namespace lockkeeper::redis

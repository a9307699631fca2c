#include "queue/subscription.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "lockkeeper/testing/fake_clock.h"
#include "wire/scripted_server.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

/// A node of a cluster that is always one answer behind.
void serveOneBehind(ScriptedServer::Peer& peer, int) {
  std::string due;
  while (true) {
    const std::vector<std::string> words = peer.command();
    if (words[0] == "INFO") {
      peer.say(bulk(goodInfo + "cluster_enabled:1\r\n"));
    } else if (words[0] == "CONFIG") {
      peer.say("*0\r\n");
    } else if (words[0] == "SPUBLISH") {
      peer.say(":0\r\n");
    } else if (words[0] == "SSUBSCRIBE") {
      peer.say(due);
      due = "*3\r\n" + bulk("ssubscribe") + bulk(words[1]) + ":1\r\n";
    } else {
      peer.say("+OK\r\n");
    }
  }
}

TEST(Subscription, AServerThatAnswersIsKeptThoughAnAnswerIsAlwaysDue) {
  const ScriptedServer server(serveOneBehind);
  const auto clock = std::make_shared<testing::FakeClock>();
  RedisOptions options;
  options.port = server.port();
  options.cluster = ClusterUse::node;
  options.ioTimeout = 10s;
  Environment environment;
  environment.clock = clock;
  Subscription subscription(options, environment);
  for (std::uint16_t slot = 1; slot <= 20; ++slot) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (true) {
      clock->advance(100us);
      const bool heard = !subscription.channelOfReports(static_cast<std::uint16_t>(slot - 1)).empty();
      (void)subscription.channelOfReports(slot);
      if (heard) break;
      ASSERT_LT(std::chrono::steady_clock::now(), end) << slot;
      std::this_thread::sleep_for(1ms);
    }
    clock->advance(2s);
  }
  EXPECT_EQ(server.connections(), 1);
}

}  // namespace
}  // namespace lockkeeper::redis

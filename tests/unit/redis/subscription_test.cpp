#include "queue/subscription.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/testing/fake_clock.h"
#include "store/companion_key.h"
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

/// A node of a cluster, and the channels that its clients are subscribed to.
class ClusterNode {
 public:
  std::uint16_t port() const { return server_.port(); }
  std::size_t channels() {
    const std::lock_guard guard(mutex_);
    return channels_.size();
  }

 private:
  void serve(ScriptedServer::Peer& peer) {
    while (true) {
      const std::vector<std::string> words = peer.command();
      if (words[0] == "INFO") {
        peer.say(bulk(goodInfo + "cluster_enabled:1\r\n"));
      } else if (words[0] == "CONFIG") {
        peer.say("*0\r\n");
      } else if (words[0] == "SPUBLISH") {
        peer.say(":0\r\n");
      } else if (words[0] == "SSUBSCRIBE" || words[0] == "SUNSUBSCRIBE") {
        const bool joins = words[0] == "SSUBSCRIBE";
        const std::lock_guard guard(mutex_);
        joins ? static_cast<void>(channels_.insert(words[1])) : static_cast<void>(channels_.erase(words[1]));
        peer.say("*3\r\n" + bulk(joins ? "ssubscribe" : "sunsubscribe") + bulk(words[1]) + ":1\r\n");
      } else {
        peer.say("+OK\r\n");
      }
    }
  }

  std::mutex mutex_;
  std::set<std::string> channels_;
  ScriptedServer server_{[this](ScriptedServer::Peer& peer, int) { serve(peer); }};
};

TEST(Subscription, LeavesTheChannelsOfSlotsInWhichNobodyWaitsAnyMore) {
  ClusterNode node;
  const auto clock = std::make_shared<testing::FakeClock>();
  RedisOptions options;
  options.port = node.port();
  options.cluster = ClusterUse::node;
  Environment environment;
  environment.clock = clock;
  Subscription subscription(options, environment);
  const auto awaitChannel = [&](const auto& channelOf) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    std::string channel;
    while ((channel = channelOf()).empty() && std::chrono::steady_clock::now() < end) {
      clock->advance(100us);
      std::this_thread::sleep_for(100us);
    }
    return channel;
  };
  const auto reportsOf = [&](std::uint16_t slot) {
    return awaitChannel([&] { return subscription.channelOfReports(slot); });
  };
  ASSERT_FALSE(reportsOf(0).empty());
  Subscription::Waiter waiter(subscription, 0);
  const std::string waited = awaitChannel([&] { return waiter.newAddress().channel; });
  for (std::uint16_t slot = 1; slot <= 300; ++slot) {
    ASSERT_FALSE(reportsOf(slot).empty()) << slot;
    clock->advance(2s);
  }
  EXPECT_LE(node.channels(), 66U) << "64 at most, the one that is waited for, and the last one";
  EXPECT_EQ(waiter.newAddress().channel, waited) << "who waits is heard all the time";
  EXPECT_FALSE(reportsOf(1).empty()) << "one that was left is entered again";
}

/// A node of a cluster whose slots all move when a client leaves the channel of one: it ends that
/// subscription by itself, and refuses the command after that.
class MovingNode {
 public:
  std::uint16_t port() const { return server_.port(); }
  int connections() const { return server_.connections(); }
  int refusals() const { return refusals_; }

 private:
  void serve(ScriptedServer::Peer& peer) {
    while (true) {
      const std::vector<std::string> words = peer.command();
      if (words[0] == "INFO") {
        peer.say(bulk(goodInfo + "cluster_enabled:1\r\n"));
      } else if (words[0] == "CONFIG") {
        peer.say("*0\r\n");
      } else if (words[0] == "SPUBLISH") {
        peer.say(":0\r\n");
      } else if (words[0] == "SSUBSCRIBE") {
        peer.say("*3\r\n" + bulk("ssubscribe") + bulk(words[1]) + ":1\r\n");
      } else if (words[0] == "SUNSUBSCRIBE") {
        ++refusals_;
        peer.say("*3\r\n" + bulk("sunsubscribe") + bulk(words[1]) + ":1\r\n" + "-MOVED " +
                 std::to_string(hashSlot(words[1])) + " 127.0.0.1:1\r\n");
      } else {
        peer.say("+OK\r\n");
      }
    }
  }

  std::atomic<int> refusals_{0};
  ScriptedServer server_{[this](ScriptedServer::Peer& peer, int) { serve(peer); }};
};

TEST(Subscription, AChannelThatTheServerTakesAwayWhileItIsLeftIsNoReasonToReconnect) {
  MovingNode node;
  const auto clock = std::make_shared<testing::FakeClock>();
  RedisOptions options;
  options.port = node.port();
  options.cluster = ClusterUse::node;
  Environment environment;
  environment.clock = clock;
  Subscription subscription(options, environment);
  for (std::uint16_t slot = 0; slot < 200; ++slot) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (subscription.channelOfReports(slot).empty()) {
      clock->advance(100us);
      ASSERT_LT(std::chrono::steady_clock::now(), end) << slot;
      std::this_thread::sleep_for(100us);
    }
    clock->advance(2s);
  }
  EXPECT_GE(node.refusals(), 64);
  EXPECT_EQ(node.connections(), 1);
}

}  // namespace
}  // namespace lockkeeper::redis

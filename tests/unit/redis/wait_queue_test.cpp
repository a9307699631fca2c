#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/redis/redis_driver.h"
#include "lockkeeper/testing/fake_clock.h"
#include "wire/scripted_server.h"

// What a claim that waits makes of messages.

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

/// Where one claim waits, and is told that it has the key as soon as it can hear that.
class OfferingServer {
 public:
  static constexpr Fence fenceOfMessage = 7;
  static constexpr Fence fenceOfReply = 8;

  /// Says `afterMessage` in the same breath.
  explicit OfferingServer(std::string afterMessage) : afterMessage_(std::move(afterMessage)) {}

  std::uint16_t port() const { return server_.port(); }

 private:
  void serve(ScriptedServer::Peer& peer) {
    peer.logIn();
    while (true) {
      const std::vector<std::string> words = peer.command();
      if (words[0] == "EVALSHA") {
        answer(peer, {words.begin() + 3 + std::stoi(words[2]), words.end()});
      } else if (words[0] == "SUBSCRIBE") {
        subscribed_ = &peer;
        peer.say("*3\r\n" + bulk("subscribe") + bulk(words[1]) + ":1\r\n");
      } else {
        peer.say(":0\r\n");
      }
    }
  }

  void answer(ScriptedServer::Peer& peer, const std::vector<std::string>& arguments) {
    if (arguments[0] != "wait") return peer.say("*2\r\n:1\r\n:" + std::to_string(fenceOfReply) + "\r\n");
    peer.say("*4\r\n:0\r\n:60000\r\n" + bulk("1") + ":0\r\n");
    const std::string& number = arguments[3];
    const std::string& channel = arguments[4];
    if (channel.empty()) return;
    const std::string grant = number + " fence " + std::to_string(fenceOfMessage);
    subscribed_.load()->say("*3\r\n" + bulk("message") + bulk(channel) + bulk(grant) + afterMessage_);
  }

  const std::string afterMessage_;
  std::atomic<ScriptedServer::Peer*> subscribed_ = nullptr;
  const ScriptedServer server_{[this](ScriptedServer::Peer& peer, int) { serve(peer); }};
};

std::optional<Fence> fenceOfWaiter(const OfferingServer& server) {
  RedisOptions options;
  options.port = server.port();
  Environment environment;
  environment.clock = std::make_shared<testing::FakeClock>();
  RedisDriver driver(options, environment);
  const AcquireRequest request{.claim = {"k", Token::generate(*environment.random), "waiter"},
                               .ttl = 30s,
                               .deadline = environment.clock->now() + 1s,
                               .renews = true};
  const AcquireResult result = driver.acquireWaiting(request, 1min, {});
  const auto* const granted = std::get_if<Granted>(&result);
  return granted == nullptr ? std::nullopt : granted->fence;
}

TEST(WaitQueue, AMessageGrantsTheKeyUnlessItsConnectionIsLeftJustThen) {
  EXPECT_EQ(fenceOfWaiter(OfferingServer("")), OfferingServer::fenceOfMessage);
  EXPECT_EQ(fenceOfWaiter(OfferingServer("-ERR the server is another one\r\n")),
            OfferingServer::fenceOfReply);
}

}  // namespace
}  // namespace lockkeeper::redis

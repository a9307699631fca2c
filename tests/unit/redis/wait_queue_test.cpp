#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lock/node/lock_node.h"
#include "lockkeeper/redis/redis_driver.h"
#include "lockkeeper/testing/fake_clock.h"
#include "wire/scripted_server.h"

// What a claim that waits makes of messages.

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

/// Where one claim waits: its first look finds the key busy, and as soon as it can hear that, it is told that
/// it has the key. Another look finds that, too.
class GrantingServer {
 public:
  static constexpr Fence fenceOfMessage = 7;
  static constexpr Fence fenceOfLook = 8;

  /// `beforeMessage` is called just before the message, which `afterMessage` follows in the same breath.
  explicit GrantingServer(std::function<void()> beforeMessage, std::string afterMessage = {})
      : beforeMessage_(std::move(beforeMessage)), afterMessage_(std::move(afterMessage)) {}

  std::uint16_t port() const { return server_.port(); }

 private:
  void serve(ScriptedServer::Peer& peer) {
    peer.logIn();
    while (true) {
      const std::vector<std::string> words = peer.command();
      if (words[0] == "EVALSHA") {
        answer(peer, {words.begin() + 3 + std::stoi(words[2]), words.end()});
      } else if (words[0] == "EVAL") {
        peer.say("*0\r\n");  // no right is missing
      } else if (words[0] == "SUBSCRIBE") {
        subscribed_ = &peer;
        peer.say("*3\r\n" + bulk("subscribe") + bulk(words[1]) + ":1\r\n");
      } else {
        peer.say(":0\r\n");
      }
    }
  }

  void answer(ScriptedServer::Peer& peer, const std::vector<std::string>& arguments) {
    if (told_) return peer.say("*2\r\n:1\r\n:" + std::to_string(fenceOfLook) + "\r\n");
    peer.say("*4\r\n:0\r\n:60000\r\n" + bulk("1") + ":0\r\n");
    const std::string& number = arguments[2];
    const std::string& channel = arguments[3];
    if (channel.empty()) return;
    beforeMessage_();
    told_ = true;
    const std::string grant = number + " grant " + std::to_string(fenceOfMessage);
    subscribed_.load()->say("*3\r\n" + bulk("message") + bulk(channel) + bulk(grant) + afterMessage_);
  }

  const std::function<void()> beforeMessage_;
  const std::string afterMessage_;
  std::atomic<bool> told_ = false;
  std::atomic<ScriptedServer::Peer*> subscribed_ = nullptr;
  const ScriptedServer server_{[this](ScriptedServer::Peer& peer, int) { serve(peer); }};
};

class WaitQueueTest : public ::testing::Test {
 protected:
  std::optional<Granted> waitAt(const GrantingServer& server) {
    RedisOptions options;
    options.port = server.port();
    Environment environment;
    environment.clock = clock;
    RedisDriver driver(options, environment);
    const AcquireRequest request{.claim = {"k", Token::generate(*environment.random), "waiter"},
                                 .ttl = 20s,
                                 .deadline = clock->now() + 1s};
    const AcquireResult result = driver.acquireWaiting(request, 1min, {});
    const auto* const granted = std::get_if<Granted>(&result);
    return granted == nullptr ? std::nullopt : std::optional(*granted);
  }

  const std::shared_ptr<testing::FakeClock> clock = std::make_shared<testing::FakeClock>();
  const Instant began = clock->now();
};

TEST_F(WaitQueueTest, ALeaseOfWhichAMessageTellsCountsFromTheLastLook) {
  const auto granted = waitAt(GrantingServer([&] { clock->advance(5s); }));
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->fence, GrantingServer::fenceOfMessage);
  EXPECT_EQ(granted->leasedFrom, began);
  EXPECT_EQ(granted->leasedFor, 20s);
}

TEST_F(WaitQueueTest, ALeaseOfMoreThanAQuarterOfItsTtlIsRenewedFirst) {
  const auto granted = waitAt(GrantingServer([&] { clock->advance(5001ms); }));
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->fence, GrantingServer::fenceOfLook);
  EXPECT_EQ(granted->leasedFrom, began + 5001ms);
  EXPECT_EQ(granted->leasedFor, 20s);
}

TEST_F(WaitQueueTest, AMessageOnAConnectionThatIsLeftJustThenGrantsNothingByItself) {
  const auto granted = waitAt(GrantingServer([] {}, "-ERR the server is another one\r\n"));
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->fence, GrantingServer::fenceOfLook);
}

// As after a slot has moved: it has its place, and asks the next node.
TEST(StoppedWait, OfAClaimThatHasAPlaceInTheQueueLeavesIt) {
  std::mutex mutex;
  std::vector<std::string> operations;
  const ScriptedServer server([&](ScriptedServer::Peer& peer, int) {
    peer.logIn();
    while (true) {
      const std::vector<std::string> words = peer.command();
      if (words[0] != "EVALSHA") {
        peer.say(words[0] == "EVAL" ? "*0\r\n" : ":0\r\n");
        continue;
      }
      const std::string& operation = words.at(3 + std::stoul(words[2]));
      {
        const std::lock_guard guard(mutex);
        operations.push_back(operation);
      }
      peer.say(operation == "wait" ? "*4\r\n:0\r\n:60000\r\n" + bulk("5") + ":0\r\n" : ":0\r\n");
    }
  });
  RedisOptions options;
  options.port = server.port();
  const Environment environment;
  LockNode node(options, environment, [] {});
  const Instant now = systemClock()->now();
  const AcquireRequest request{
      .claim = {"k", Token::generate(*environment.random), "waiter"}, .ttl = 20s, .deadline = now + 10s};
  std::stop_source stop;
  stop.request_stop();
  std::string ticket = "5";
  EXPECT_TRUE(
      std::holds_alternative<Busy>(node.acquireWaiting(request, now + 1min, stop.get_token(), ticket)));
  const std::lock_guard guard(mutex);
  EXPECT_EQ(operations, (std::vector<std::string>{"wait", "release"}));
}

}  // namespace
}  // namespace lockkeeper::redis

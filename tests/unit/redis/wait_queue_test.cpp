#include <gtest/gtest.h>

#include <algorithm>
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

// Its keys are one more than the queue's.
bool isAboutRights(const std::vector<std::string>& words) {
  return words[0].starts_with("EVAL") && words.at(2) == "5";
}

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
      if (isAboutRights(words)) {
        peer.say("*0\r\n");  // none is missing
      } else if (words[0] == "EVALSHA") {
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

/// A server whose queue refuses what it is told to, and otherwise has the claim waiting; what one claim that
/// is to stop asks there.
class StoppedWait : public ::testing::Test {
 protected:
  AcquireResult wait(std::string ticket, bool resend = false) {
    RedisOptions options;
    options.port = server_.port();
    const Environment environment;
    LockNode node(options, environment, [] {});
    const Instant now = systemClock()->now();
    const AcquireRequest request{.claim = {"k", Token::generate(*environment.random), "waiter"},
                                 .ttl = 20s,
                                 .deadline = now + 10s,
                                 .resend = resend};
    std::stop_source stop;
    stop.request_stop();
    return node.acquireWaiting(request, now + 1min, stop.get_token(), ticket);
  }
  std::vector<std::string> operations() {
    const std::lock_guard guard(mutex_);
    return operations_;
  }

  std::vector<std::string> refused;

 private:
  void serve(ScriptedServer::Peer& peer) {
    peer.logIn();
    while (true) {
      const std::vector<std::string> words = peer.command();
      if (isAboutRights(words) || words[0] != "EVALSHA") {
        peer.say(words[0].starts_with("EVAL") ? "*0\r\n" : ":0\r\n");
        continue;
      }
      const std::string& operation = words.at(3 + std::stoul(words[2]));
      {
        const std::lock_guard guard(mutex_);
        operations_.push_back(operation);
      }
      if (std::ranges::find(refused, operation) != refused.end()) {
        peer.say("-NOPERM this user has no permissions to run the 'evalsha' command\r\n");
      } else {
        peer.say(operation == "wait" ? "*4\r\n:0\r\n:60000\r\n" + bulk("5") + ":0\r\n" : ":0\r\n");
      }
    }
  }

  std::mutex mutex_;
  std::vector<std::string> operations_;
  const ScriptedServer server_{[this](ScriptedServer::Peer& peer, int) { serve(peer); }};
};

using Operations = std::vector<std::string>;

// As after a slot has moved: it has its place, and asks the next node.
TEST_F(StoppedWait, OfAClaimThatHasAPlaceInTheQueueLeavesIt) {
  EXPECT_TRUE(std::holds_alternative<Busy>(wait("5")));
  EXPECT_EQ(operations(), (Operations{"wait", "release"}));
}

TEST_F(StoppedWait, OfAClaimThatIsSentAgainLooksForItFirst) {
  EXPECT_TRUE(std::holds_alternative<Busy>(wait("")));
  EXPECT_EQ(operations(), Operations{}) << "it was never sent";
  EXPECT_TRUE(std::holds_alternative<Busy>(wait("", true)));
  EXPECT_EQ(operations(), (Operations{"wait", "release"}));
}

TEST_F(StoppedWait, WithoutTheRightsToWaitLeavesTheQueue) {
  refused = {"wait"};
  EXPECT_THROW((void)wait("5"), ConfigError);
  EXPECT_EQ(operations(), (Operations{"wait", "release"}));
}

TEST_F(StoppedWait, WithoutTheRightsToLeaveMayStillBeInTheQueue) {
  refused = {"wait", "release"};
  EXPECT_THROW((void)wait("5"), WithdrawalUnknown);
}

}  // namespace
}  // namespace lockkeeper::redis

#include "lockkeeper/poco/logging_listener.h"

#include <Poco/AutoPtr.h>
#include <Poco/Channel.h>
#include <Poco/Exception.h>
#include <Poco/Logger.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tell_everything.h"

namespace lockkeeper::poco {
namespace {

using namespace std::chrono_literals;
using Poco::Message;

/// Keeps what is logged, as "level text".
class Recorder final : public Poco::Channel {
 public:
  void log(const Message& message) override {
    static constexpr const char* levels[] = {"",       "fatal",       "critical", "error", "warning",
                                             "notice", "information", "debug",    "trace"};
    lines.push_back(std::string(levels[message.getPriority()]) + " " + message.getText());
  }
  std::vector<std::string> lines;
};

class Broken final : public Poco::Channel {
 public:
  void log(const Message&) override { throw Poco::WriteFileException("disk full"); }
};

class LoggingListenerTest : public ::testing::Test {
 protected:
  ~LoggingListenerTest() override { Poco::Logger::destroy("locks"); }

  void logFrom(Message::Priority level) { logger.setLevel(level); }
  using Lines = std::vector<std::string>;

  Poco::AutoPtr<Recorder> recorder{new Recorder};
  Poco::Logger& logger = Poco::Logger::create("locks", recorder, Message::PRIO_TRACE);
  Teller listener{std::make_shared<LoggingListener>(logger)};
  const Lines& lines = recorder->lines;
};

TEST_F(LoggingListenerTest, EachEventHasItsLevel) {
  listener.acquired("order", 3ms, 7);
  listener.acquired("order", 0ms, {});
  listener.timedOut("order", 2s);
  listener.gaveUp("order", ErrorCode::cancelled, 1s);
  listener.gaveUp("order", ErrorCode::storeUnavailable, 1s);
  listener.renewed("order");
  listener.renewalFailed("order", ErrorCode::outcomeUnknown, "no answer", 9s);
  listener.lost("order", LossReason::notOwner);
  listener.released("order", 40s);
  listener.decided("+49", {.allowed = true, .policy = "sms", .outage = {}});
  listener.decided("+49", {.retryAfter = 500ms, .policy = "sms", .outage = {}});
  listener.attemptFailed("order", ErrorCode::outcomeUnknown, "no answer");
  listener.attemptFailed("order", ErrorCode::config, "wrong password");
  listener.attemptFailed("order", ErrorCode::protocol, "not Redis");
  listener.noted("redis://a:1/0", "evicts keys");
  listener.other(EventKind::callbackLate, "chief", "it still ran");
  listener.taskEnded("report", TaskOutcome::done, "", 2s);
  listener.taskEnded("report", TaskOutcome::threw, "no paper", 2s);
  listener.other(EventKind::loadFailed, "users:1", "no table");
  listener.other(EventKind::cacheHit, "users:1", "");
  listener.other(EventKind::termBegan, "chief", "");
  listener.other(EventKind::termEnded, "chief", "");
  listener.taskPlanned("report", 1h);
  listener.other(EventKind::scheduleEnded, "report", "");
  listener.other(EventKind::phaseChanged, "shop", "both");
  listener.requestRefused("buy", 423);
  listener.requestRefused("buy", 429, true);
  EXPECT_EQ(
      lines,
      (Lines{
          "debug acquired 'order' after 3ms, fence 7",
          "debug acquired 'order' after 0s",
          "debug 'order' was busy for 2s",
          "debug gave up waiting for 'order' after 1s: cancelled",
          "warning gave up waiting for 'order' after 1s: store unavailable",
          "trace renewed 'order'",
          "warning a renewal of 'order' failed: its lease runs for another 9s (outcome unknown): no answer",
          "error lost 'order': not the owner any more",
          "debug released 'order', held for 40s",
          "debug the limit 'sms' refused '+49', which may come again in 500ms",
          "warning the store failed for 'order' (outcome unknown): no answer",
          "error the store failed for 'order' (configuration): wrong password",
          "error the store failed for 'order' (protocol): not Redis",
          "notice redis://a:1/0: evicts keys",
          "error the election 'chief': it still ran",
          "debug the task 'report' done after 2s",
          "warning the task 'report' threw after 2s: no paper",
          "warning the value of 'users:1': load failed: no table",
          "trace the value of 'users:1': cache hit",
          "notice this process leads 'chief'",
          "notice this process has led 'chief' for 0s",
          "trace the next tick of the task 'report' is in 1h",
          "trace the task 'report' has no further tick",
          "notice the migration 'shop' now goes by both",
          "trace the route 'buy' refuses a request with 423",
          "trace the route 'buy' would refuse a request with 429"}));
}

TEST_F(LoggingListenerTest, AStoreThatIsDownDoesNotFillTheLog) {
  for (int call = 0; call < 500; ++call) {
    listener.attemptFailed("order", ErrorCode::storeUnavailable, "refused");
    listener.gaveUp("order", ErrorCode::storeUnavailable, 1s);
    listener.gaveUp("order", ErrorCode::cancelled, 1s);
  }
  EXPECT_EQ(std::ranges::count_if(lines, [](const auto& line) { return line.starts_with("warning"); }), 20);
  EXPECT_EQ(std::ranges::count_if(lines, [](const auto& line) { return line.starts_with("debug"); }), 500);
  listener.attemptFailed("order", ErrorCode::outcomeUnknown, "no answer");
  EXPECT_EQ(lines.back(), "warning the store failed for 'order' (outcome unknown): no answer");
  const std::size_t before = lines.size();
  for (int lock = 0; lock < 500; ++lock) listener.lost("order", LossReason::notOwner);
  EXPECT_EQ(lines.size(), before + 500);
}

TEST_F(LoggingListenerTest, ANodeThatFailsIsToldOnceAndOnceThatItIsBack) {
  logFrom(Message::PRIO_NOTICE);
  const auto ask = [&](const char* node, NodeOutcome outcome) { listener.nodeAsked(node, outcome, 1ms); };
  ask("redis://a:1/0", NodeOutcome::agreed);
  ask("redis://a:1/0", NodeOutcome::refused);
  EXPECT_EQ(lines, Lines{});
  ask("redis://a:1/0", NodeOutcome::failed);
  ask("redis://a:1/0", NodeOutcome::unanswered);
  ask("redis://a:1/0", NodeOutcome::leftOut);
  ask("redis://b:1/0", NodeOutcome::agreed);
  EXPECT_EQ(lines, Lines{"warning redis://a:1/0 does not vote: failed"});
  ask("redis://a:1/0", NodeOutcome::refused);
  ask("redis://a:1/0", NodeOutcome::agreed);
  EXPECT_EQ(lines,
            (Lines{"warning redis://a:1/0 does not vote: failed", "notice redis://a:1/0 votes again"}));
}

TEST_F(LoggingListenerTest, EachRequestToANodeIsTraced) {
  listener.nodeAsked("redis://a:1/0", NodeOutcome::refused, 3ms);
  EXPECT_EQ(lines, Lines{"trace redis://a:1/0 refused after 3ms"});
}

TEST_F(LoggingListenerTest, NoKeyAndNoTextForgesALine) {
  listener.lost("a\nerror lost 'b'", LossReason::notOwner);
  listener.attemptFailed("k", ErrorCode::protocol, "x\r\nfatal y\x1b[2J");
  listener.noted("s\n", "m\n");
  listener.nodeAsked("n\n", NodeOutcome::failed, 1ms);
  ASSERT_EQ(lines.size(), 5U);
  for (const auto& line : lines) {
    for (const char c : line) EXPECT_TRUE(c >= ' ' && c < 0x7f) << line;
  }
  EXPECT_EQ(lines[0], "error lost 'a\\x0aerror lost 'b'': not the owner any more");
}

TEST_F(LoggingListenerTest, NoLineIsLong) {
  listener.lost(std::string(512, 'k'), LossReason::notOwner);
  listener.attemptFailed(std::string(512, '\xff'), ErrorCode::protocol, std::string(100'000, '\xff'));
  for (const auto& line : lines) EXPECT_LT(line.size(), 3000U);
}

TEST_F(LoggingListenerTest, ALevelThatIsOffLogsNothing) {
  logger.setLevel(0);
  listener.everything();
  EXPECT_EQ(lines, Lines{});
}

TEST_F(LoggingListenerTest, ABrokenLogBreaksNothing) {
  logger.setChannel(Poco::AutoPtr<Broken>(new Broken));
  EXPECT_NO_THROW(listener.everything());
}

TEST_F(LoggingListenerTest, NeedsTheLoggerNoLongerThanPocoDoes) {
  Poco::Logger::destroy("locks");
  listener.lost("order", LossReason::maxHold);
  EXPECT_EQ(lines, Lines{"error lost 'order': maximum hold time reached"});
}

}  // namespace
}  // namespace lockkeeper::poco

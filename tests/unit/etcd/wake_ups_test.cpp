#include "queue/wake_ups.h"

#include <Poco/Exception.h>
#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/StreamSocket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>

#include "lockkeeper/testing/fake_clock.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::etcd {
namespace {

using namespace std::chrono_literals;

/// Its streams tell without an end, as fast as they are read, of one event.
class TalkativeMember {
 public:
  explicit TalkativeMember(std::string event)
      : event_(chunk(R"("events":[)" + std::move(event) + "]")),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  std::uint16_t port() const { return listener_.address().port(); }
  std::size_t streams() const { return streams_; }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (listener_.poll(Poco::Timespan(0, 1000), Poco::Net::Socket::SELECT_READ)) {
        stream_ = listener_.acceptConnection();
        stream_->setBlocking(false);
        unsent_ = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(R"("created":true)");
        ++streams_;
      }
      while (stream_ && stream_->poll({}, Poco::Net::Socket::SELECT_WRITE)) tell();
    }
  }

  void tell() {
    if (unsent_.empty()) unsent_ = event_;
    try {
      const int count = stream_->sendBytes(unsent_.data(), static_cast<int>(unsent_.size()));
      unsent_.erase(0, static_cast<std::size_t>(std::max(0, count)));
    } catch (const Poco::Exception&) {  // it was dropped
      stream_.reset();
    }
  }

  static std::string chunk(const std::string& result) {
    const std::string line = R"({"result":{)" + result + "}}\n";
    std::ostringstream out;
    out << std::hex << line.size() << "\r\n" << line << "\r\n";
    return out.str();
  }

  const std::string event_;
  Poco::Net::ServerSocket listener_{Poco::Net::SocketAddress("127.0.0.1", 0)};
  std::optional<Poco::Net::StreamSocket> stream_;
  std::string unsent_;
  std::atomic<std::size_t> streams_ = 0;
  std::jthread thread_;
};

/// Somebody who waits for "key" by the streams of a member.
struct WaitingAt {
  static EtcdOptions options(const TalkativeMember& member) {
    EtcdOptions made;
    made.members = {{.host = "127.0.0.1", .port = member.port()}};
    made.connectTimeout = made.ioTimeout = 5s;
    return made;
  }
  static Environment environment(const std::shared_ptr<Clock>& clock) {
    Environment made;
    made.clock = clock;
    return made;
  }

  explicit WaitingAt(const TalkativeMember& member) : store(options(member), environment(clock)) {}

  WakeUps::News hears() {
    waiter.watchAll();
    return waiter.wait(clock->now() + 1h, clock->now() + 1h);
  }
  /// Whether there is a stream that tells of what it waits for.
  bool isTold() { return waiter.watch({.needed = 1}); }

  const std::shared_ptr<testing::FakeClock> clock = std::make_shared<testing::FakeClock>();
  EtcdStore store;
  Leases leases{store};
  WaitingLease lease{leases, *clock};
  HeldClaims held;
  WakeUps wakeUps{store, lease, held};
  WakeUps::Waiter waiter{wakeUps, "/locks/key/claim", {}};
};

TEST(EtcdWakeUps, AStreamThatTellsMoreThanIsReadIsDroppedAndTheNextOneMade) {
  TalkativeMember member(R"({"type":"PUT","kv":{"key":")" + std::string(10'000, 'A') + R"("}})");
  WaitingAt one(member);
  EXPECT_EQ(one.hears(), WakeUps::News::changed);
  EXPECT_TRUE(one.isTold());
  ASSERT_TRUE(test::waitUntil([&] {
    one.wakeUps.readPending();
    one.clock->advance(1s);
    return !one.isTold();
  }));
  EXPECT_EQ(one.hears(), WakeUps::News::changed);
  EXPECT_EQ(member.streams(), 2U);
}

TEST(EtcdWakeUps, TellOfWhatIsRemovedWhileAWaiterReadsItsQueue) {
  TalkativeMember member(R"({"type":"DELETE","kv":{"key":")" + base64("/locks/key/other") +
                         R"(","mod_revision":"7"}})");
  WaitingAt one(member);
  EXPECT_EQ(one.hears(), WakeUps::News::changed);
  EXPECT_TRUE(test::waitUntil(
      [&] {
        one.waiter.watchAll();
        one.wakeUps.readPending();  // as others do meanwhile
        EXPECT_TRUE(one.isTold());
        return one.waiter.wait(one.clock->now(), one.clock->now()) == WakeUps::News::changed;
      },
      5s));
}

}  // namespace
}  // namespace lockkeeper::etcd

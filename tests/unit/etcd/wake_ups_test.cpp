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

/// Its streams tell without an end, as fast as they are read, of what is of no interest.
class TalkativeMember {
 public:
  std::uint16_t port() const { return listener_.address().port(); }
  std::size_t streams() const { return streams_; }

 private:
  void run(const std::stop_token& stop) {
    const std::string event =
        R"("events":[{"type":"PUT","kv":{"key":")" + std::string(10'000, 'A') + R"("}}])";
    while (!stop.stop_requested()) {
      if (listener_.poll(Poco::Timespan(0, 1000), Poco::Net::Socket::SELECT_READ)) {
        stream_ = listener_.acceptConnection();
        stream_->setBlocking(false);
        unsent_ = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(R"("created":true)");
        ++streams_;
      }
      while (stream_ && stream_->poll({}, Poco::Net::Socket::SELECT_WRITE)) tell(event);
    }
  }

  void tell(const std::string& event) {
    if (unsent_.empty()) unsent_ = chunk(event);
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

  Poco::Net::ServerSocket listener_{Poco::Net::SocketAddress("127.0.0.1", 0)};
  std::optional<Poco::Net::StreamSocket> stream_;
  std::string unsent_;
  std::atomic<std::size_t> streams_ = 0;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

TEST(EtcdWakeUps, AStreamThatTellsMoreThanIsReadIsDroppedAndTheNextOneMade) {
  TalkativeMember member;
  const auto clock = std::make_shared<testing::FakeClock>();
  Environment environment;
  environment.clock = clock;
  EtcdOptions options;
  options.members = {{.host = "127.0.0.1", .port = member.port()}};
  options.connectTimeout = options.ioTimeout = 5s;
  EtcdStore store(options, environment);
  Leases leases(store);
  WaitingLease lease(leases, *clock);
  HeldClaims held;
  WakeUps wakeUps(store, lease, held);
  WakeUps::Waiter waiter(wakeUps, "/locks/key/claim", {});
  const auto hears = [&] {
    waiter.watchAll();
    return waiter.wait(clock->now() + 1h, clock->now() + 1h);
  };
  const auto live = [&] { return waiter.watch({.needed = 1}); };
  EXPECT_EQ(hears(), WakeUps::News::changed);
  EXPECT_TRUE(live());
  ASSERT_TRUE(test::waitUntil([&] {
    wakeUps.readPending();
    clock->advance(1s);
    return !live();
  }));
  EXPECT_EQ(hears(), WakeUps::News::changed);
  EXPECT_EQ(member.streams(), 2U);
}

}  // namespace
}  // namespace lockkeeper::etcd

#include "wire/connection.h"

#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/StreamSocket.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "lockkeeper/base/clock.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::etcd {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Each look at it takes a millisecond.
class TickingClock final : public Clock {
 public:
  Instant now() const noexcept override { return now_ += milliseconds{1}; }
  void wait(std::unique_lock<std::mutex>&, std::condition_variable&, Instant) override {}

 private:
  mutable Instant now_{};
};

/// A connection whose other end is in the hands of the test.
class EtcdConnection : public ::testing::Test {
 protected:
  void answer(std::string_view bytes) {
    if (!accepted_) {
      (void)connection.advance(clock, Instant::min());  // it begins to connect
      peer_ = listener_.acceptConnection();
      accepted_ = true;
    }
    peer_.sendBytes(bytes.data(), static_cast<int>(bytes.size()));
  }
  void post() { connection.post("/v3/kv/txn", "Host: h\r\n", "{}"); }
  /// Goes on until the reply is complete, or nothing comes for a while.
  bool completes() {
    bool complete = false;
    for (pollfd awaited; !(complete = connection.advance(clock, Instant::max()));) {
      awaited = connection.awaited();
      if (::poll(&awaited, 1, 200) == 0) break;
    }
    return complete;
  }

 private:
  Poco::Net::ServerSocket listener_{Poco::Net::SocketAddress("127.0.0.1", 0)};
  Poco::Net::StreamSocket peer_;
  bool accepted_ = false;

 protected:
  TickingClock clock;
  MemberHost host{{.host = "127.0.0.1", .port = listener_.address().port()}, milliseconds{0}};
  Connection connection{0, host, nullptr, Instant{}};
};

TEST_F(EtcdConnection, ServesOneRequestAfterTheOther) {
  for (int round = 0; round < 2; ++round) {
    post();
    EXPECT_FALSE(connection.advance(clock, Instant::max()));
    answer(ok);
    ASSERT_TRUE(completes());
    EXPECT_EQ(connection.reply().body(), "ok");
    EXPECT_TRUE(connection.usable(clock));
  }
}

TEST_F(EtcdConnection, IsOfNoUseWhenMoreHasComeThanTheReply) {
  post();
  answer(std::string(ok) + std::string(ok));
  ASSERT_TRUE(completes());
  EXPECT_FALSE(connection.usable(clock));
}

TEST_F(EtcdConnection, WhatHasComeBehindAReplyThatWasLeftIsNoReply) {
  post();
  EXPECT_FALSE(connection.advance(clock, Instant::max()));
  while (!connection.allSent()) (void)connection.advance(clock, Instant::max());
  connection.ignoreReply();
  answer(std::string(ok) + std::string(ok));
  post();
  EXPECT_THROW((void)completes(), StreamBroken);
  EXPECT_FALSE(connection.sent());
}

TEST_F(EtcdConnection, ReadsNoLongerThanItMayFromAServerThatNeverStops) {
  post();
  std::string chunks;
  for (int i = 0; i < 10000; ++i) chunks += "1\r\nx\r\n";
  answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks);
  while (!connection.allSent()) (void)connection.advance(clock, Instant::min());
  EXPECT_FALSE(connection.advance(clock, Instant::min()));
  const std::size_t before = connection.reply().body().size();
  EXPECT_LT(before, 10000U) << "60 kB have come";
  EXPECT_TRUE(connection.hasMore());
  EXPECT_FALSE(completes());
  EXPECT_EQ(connection.reply().body().size(), 10000U);
  EXPECT_FALSE(connection.hasMore());
}

/// Connections to a name that has two addresses.
class EtcdConnectionToAName : public ::testing::Test {
 protected:
  static Poco::Net::ServerSocket bound() {
    Poco::Net::ServerSocket socket;
    socket.bind(Poco::Net::SocketAddress("127.0.0.1", 0));
    return socket;
  }
  /// Goes on until the address is connected to.
  bool comesTo(std::size_t address, Connection& connection) {
    return test::waitUntil([&] {
      (void)connection.advance(clock, Instant::min());
      return listeners[address].poll({}, Poco::Net::Socket::SELECT_READ);
    });
  }
  std::unique_ptr<Connection> begin() {
    auto made = std::make_unique<Connection>(0, host, nullptr, Instant{});
    made->post("/v3/kv/txn", "Host: h\r\n", "{}");
    return made;
  }

  TickingClock clock;
  std::array<Poco::Net::ServerSocket, 2> listeners{bound(), bound()};  // none of which listens yet
  MemberHost host{
      {.host = "etcd.example", .port = 2379},
      milliseconds{0},
      [all = Location({listeners[0].address(), listeners[1].address()})](const auto&, auto) { return all; }};
};

TEST_F(EtcdConnectionToAName, IsMadeToTheNextAddressWhenOneRefuses) {
  listeners[1].listen();
  EXPECT_TRUE(comesTo(1, *begin()));
}

TEST_F(EtcdConnectionToAName, BeginsWithTheAddressThatTheLastOneWasMadeTo) {
  listeners[1].listen();
  const auto first = begin();
  ASSERT_TRUE(comesTo(1, *first));
  (void)listeners[1].acceptConnection();
  listeners[0].listen();
  EXPECT_TRUE(comesTo(1, *begin()));
}

TEST_F(EtcdConnectionToAName, BeginsWithTheNextAddressWhereNobodyAnswersAtTheLastOne) {
  for (auto& each : listeners) each.listen();
  const auto first = begin(), second = begin();
  ASSERT_TRUE(comesTo(0, *first));
  ASSERT_TRUE(comesTo(0, *second));
  first->avoidAddress();
  second->avoidAddress();
  EXPECT_TRUE(comesTo(1, *begin()));
}

TEST_F(EtcdConnectionToAName, IsNoneWhenAllAddressesRefuse) {
  const auto made = begin();
  EXPECT_THROW(test::waitUntil([&] { return made->advance(clock, Instant::min()); }), StreamBroken);
}

}  // namespace
}  // namespace lockkeeper::etcd

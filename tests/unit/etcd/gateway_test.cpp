#include "store/gateway.h"

#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/StreamSocket.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/testing/fake_clock.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::etcd {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view leftPath = "/left";

/// Answers every request but those to `leftPath`. The next `refusals` calls hear that their log-in has ended.
class Member {
 public:
  std::uint16_t port() const { return listener_.address().port(); }
  bool hasLeft() const { return left_; }

  std::atomic<int> refusals = 0;
  std::atomic<bool> refusesLogIns = false;
  std::atomic<bool> holdsLogIns = false;  // no log-in is answered meanwhile
  std::size_t logIns() const { return logIns_; }

  /// Ends all connections on which a reply was left.
  void endLeft() {
    ended_ = true;
    while (ended_) std::this_thread::yield();
  }

 private:
  struct Peer {
    Poco::Net::StreamSocket socket;
    bool left = false;
    bool logsIn = false;
  };

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (ended_) {
        std::erase_if(peers_, [](const Peer& each) { return each.left; });
        ended_ = false;
      }
      if (listener_.poll(Poco::Timespan(0, 1000), Poco::Net::Socket::SELECT_READ)) {
        peers_.push_back({listener_.acceptConnection()});
      }
      std::erase_if(peers_, [this](Peer& each) { return !answer(each); });
    }
  }

  bool answer(Peer& peer) {
    if (peer.logsIn) {
      const bool hasGivenUp = peer.socket.poll({}, Poco::Net::Socket::SELECT_READ);
      if (hasGivenUp || holdsLogIns) return !hasGivenUp;
      peer.logsIn = false;
      return refusesLogIns ? reply(peer, "400 Bad Request", R"({"code":3,"message":"wrong password"})")
                           : reply(peer, "200 OK", R"({"token":"t"})");
    }
    if (!peer.socket.poll({}, Poco::Net::Socket::SELECT_READ)) return true;
    std::array<char, 4096> bytes{};
    const int count = peer.socket.receiveBytes(bytes.data(), static_cast<int>(bytes.size()));
    if (count <= 0) return false;
    const std::string_view request(bytes.data(), static_cast<std::size_t>(count));
    if (request.find(leftPath) != std::string_view::npos) {
      peer.left = left_ = true;
      return true;
    }
    if (request.find("/v3/auth/authenticate") != std::string_view::npos) {
      ++logIns_;
      peer.logsIn = true;
      return true;
    }
    if (refusals > 0) {
      --refusals;
      return reply(peer, "401 Unauthorized", R"({"code":16,"message":"invalid auth token"})");
    }
    return reply(peer, "200 OK", "{}");
  }

  static bool reply(Peer& peer, const std::string& status, const std::string& body) {
    const std::string text =
        "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    return peer.socket.sendBytes(text.data(), static_cast<int>(text.size())) > 0;
  }

  Poco::Net::ServerSocket listener_{Poco::Net::SocketAddress("127.0.0.1", 0)};
  std::vector<Peer> peers_;
  std::atomic<bool> left_ = false;
  std::atomic<bool> ended_ = false;
  std::atomic<std::size_t> logIns_ = 0;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

/// Does something at one of the looks at it.
class EventfulClock final : public Clock {
 public:
  Instant now() const noexcept override {
    if (left_ > 0 && --left_ == 0) event_();
    return systemClock()->now();
  }
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, Instant until) override {
    systemClock()->wait(lock, changed, until);
  }
  void atLook(int look, std::function<void()> event) {
    event_ = std::move(event);
    left_ = look;
  }
  bool happened() const { return left_ == 0; }

 private:
  mutable int left_ = 0;
  std::function<void()> event_;
};

/// While `call` is made on a kept connection, that one ends: at each of the looks at the clock until the
/// caller waits for the reply that was left.
template <class Call>
void endMeanwhile(Call&& call) {
  for (int look = 1; look <= 3; ++look) {
    SCOPED_TRACE("at look " + std::to_string(look));
    Member member;
    const auto clock = std::make_shared<EventfulClock>();
    Environment environment;
    environment.clock = clock;
    EtcdOptions options;
    options.members = {{.host = "127.0.0.1", .port = member.port()}};
    options.connectTimeout = options.ioTimeout = 5s;
    Gateway gateway(options, environment);
    const auto deadline = [&] { return systemClock()->now() + 10s; };
    (void)gateway.call("/first", "{}", deadline(), Effect::none);
    gateway.send(leftPath, "{}");
    while (!member.hasLeft()) std::this_thread::yield();
    clock->atLook(look, [&] { member.endLeft(); });
    call(gateway, deadline());
    EXPECT_TRUE(clock->happened());
  }
}

TEST(EtcdGateway, ACallIsMadeWhenItsKeptConnectionEnds) {
  endMeanwhile([](Gateway& gateway, Instant deadline) {
    EXPECT_NO_THROW((void)gateway.call("/next", "{}", deadline, Effect::perhaps));
  });
}

TEST(EtcdGateway, CallsThatAreMadeTogetherAreMadeWhenAKeptConnectionEnds) {
  endMeanwhile([](Gateway& gateway, Instant deadline) {
    std::vector<BatchedCall> calls(3, {.body = "{}"});
    gateway.callAll("/next", calls, deadline);
    for (const BatchedCall& each : calls) EXPECT_TRUE(each.answer) << each.cause;
  });
}

/// One member, and callers with a user, whose time the test lets pass.
class EtcdLogIn : public ::testing::Test {
 protected:
  EtcdOptions options(std::string user) const {
    EtcdOptions all;
    all.members = {{.host = "127.0.0.1", .port = member.port()}};
    all.connectTimeout = all.ioTimeout = 5s;
    all.user = std::move(user);
    return all;
  }
  Environment environment() const {
    Environment all;
    all.clock = clock;
    return all;
  }
  void call(std::chrono::milliseconds time = 10s) {
    (void)gateway.call("/path", "{}", clock->now() + time, Effect::perhaps);
  }
  /// `count` calls, of which none gets a token before all need one.
  template <class Call>
  void callTogether(std::size_t count, Call&& each) {
    member.holdsLogIns = true;
    std::vector<std::jthread> callers;
    for (std::size_t i = 0; i < count; ++i) callers.emplace_back(each);
    EXPECT_TRUE(test::waitUntil([&] { return member.logIns() + clock->waiters() == count; }));
    member.holdsLogIns = false;
  }

  Member member;
  const std::shared_ptr<testing::FakeClock> clock = std::make_shared<testing::FakeClock>();
  Gateway gateway{options("shop"), environment()};
};

TEST_F(EtcdLogIn, IsRepeatedOnceInACallAndASecondRefusalIsAnOutage) {
  member.refusals = 1;
  EXPECT_NO_THROW(call());
  EXPECT_EQ(member.logIns(), 2U);
  member.refusals = 2;
  EXPECT_THROW(call(), StoreUnavailable);
  EXPECT_NO_THROW(call());
}

TEST_F(EtcdLogIn, ThatIsRefusedIsAWrongConfiguration) {
  member.refusesLogIns = true;
  EXPECT_THROW(call(), ConfigError);
  Gateway nobodys(options(""), environment());
  member.refusals = 2;
  EXPECT_THROW((void)nobodys.call("/path", "{}", clock->now() + 10s, Effect::none), ConfigError);
}

TEST_F(EtcdLogIn, ServesAllWhoNeedATokenMeanwhile) {
  callTogether(16, [&] { EXPECT_NO_THROW(call()); });
  EXPECT_EQ(member.logIns(), 1U);
}

TEST_F(EtcdLogIn, IsRefusedToAllWhoNeedATokenMeanwhile) {
  member.refusesLogIns = true;
  callTogether(16, [&] { EXPECT_THROW(call(), ConfigError); });
  EXPECT_EQ(member.logIns(), 1U);
}

TEST_F(EtcdLogIn, IsTakenOverWhenTheTimeOfItsCallerIsOver) {
  member.holdsLogIns = true;
  std::jthread first([&] { EXPECT_THROW(call(20ms), StoreUnavailable); });
  EXPECT_TRUE(test::waitUntil([&] { return member.logIns() == 1; }));
  std::jthread second([&] { EXPECT_NO_THROW(call()); });
  EXPECT_TRUE(clock->awaitWaiters(1));
  clock->advance(20ms);
  EXPECT_TRUE(test::waitUntil([&] { return member.logIns() == 2; }));
  member.holdsLogIns = false;
}

TEST_F(EtcdLogIn, IsAwaitedNoLongerThanTheCallMayTake) {
  member.holdsLogIns = true;
  std::jthread first([&] { EXPECT_NO_THROW(call()); });
  EXPECT_TRUE(test::waitUntil([&] { return member.logIns() == 1; }));
  std::jthread second([&] { EXPECT_THROW(call(20ms), StoreUnavailable); });
  EXPECT_TRUE(clock->awaitWaiters(1));
  clock->advance(20ms);
  second.join();
  member.holdsLogIns = false;
}

/// A resolver that hangs when it is told to, as long as this object lives.
class HangingResolver {
 public:
  explicit HangingResolver(std::uint16_t port) : state_(std::make_shared<State>()) { state_->port = port; }
  HangingResolver(const HangingResolver&) = delete;
  HangingResolver& operator=(const HangingResolver&) = delete;
  ~HangingResolver() { hang(false); }

  void hang(bool whether) {
    state_->hangs = whether;
    state_->hangs.notify_all();
  }
  int asked() const { return state_->asked; }
  Resolver resolver() const {
    return [state = state_](const std::string&, std::uint16_t) {
      ++state->asked;
      state->hangs.wait(true);
      if (state->fails) throw StreamBroken("no such host");
      return std::vector<Poco::Net::SocketAddress>{{"127.0.0.1", state->port}};
    };
  }
  void fail() { state_->fails = true; }

 private:
  struct State {
    std::uint16_t port = 0;
    std::atomic<bool> hangs = false;
    std::atomic<bool> fails = false;
    std::atomic<int> asked = 0;
  };
  std::shared_ptr<State> state_;  // shared with the threads of lookups
};

class EtcdNames : public ::testing::Test {
 protected:
  static EtcdOptions options() {
    EtcdOptions all;
    all.members = {{.host = "etcd.example", .port = 2379}};
    all.connectTimeout = all.ioTimeout = 2s;
    return all;
  }
  static Instant in(std::chrono::milliseconds time) { return systemClock()->now() + time; }
  void call() { (void)gateway.call("/path", "{}", in(10s), Effect::none); }
  /// Nothing is kept for the next call after this.
  void loseConnections() {
    gateway.send(leftPath, "{}");
    while (!member.hasLeft()) std::this_thread::yield();
    member.endLeft();
  }

  Member member;
  HangingResolver names{member.port()};
  Gateway gateway{options(), Environment{}, names.resolver()};
};

TEST_F(EtcdNames, CallsEndByTheirDeadlinesWhileTheResolverHangs) {
  names.hang(true);
  const Instant end = in(5s);
  EXPECT_THROW((void)gateway.call("/path", "{}", in(200ms), Effect::perhaps), StoreUnavailable);
  std::vector<BatchedCall> calls(40, {.body = "{}"});
  gateway.callAll("/path", calls, in(200ms));
  for (const BatchedCall& each : calls) {
    EXPECT_FALSE(each.answer);
    EXPECT_EQ(each.error, ErrorCode::storeUnavailable);
  }
  gateway.send(leftPath, "{}");
  (void)gateway.stream("/path", "{}", in(200ms));
  EXPECT_LT(systemClock()->now(), end);
  EXPECT_EQ(names.asked(), 1) << "one thread hangs, not one for each connection";
}

TEST_F(EtcdNames, AnAddressThatWasFoundServesWhileTheResolverHangs) {
  call();
  loseConnections();
  names.hang(true);
  EXPECT_NO_THROW(call());
  EXPECT_EQ(names.asked(), 2);
}

TEST_F(EtcdNames, AnAddressThatWasFoundServesWhileTheResolverFails) {
  call();
  loseConnections();
  names.fail();
  EXPECT_NO_THROW(call());
  EXPECT_EQ(names.asked(), 2);
}

TEST(EtcdAddresses, OneThatRefusesFailsNoCallWhileAnotherOneAnswers) {
  const Member member;
  Poco::Net::ServerSocket refusing;  // It does not listen.
  refusing.bind(Poco::Net::SocketAddress("127.0.0.1", 0));
  const std::vector<Poco::Net::SocketAddress> addresses{refusing.address(), {"127.0.0.1", member.port()}};
  EtcdOptions options;
  options.members = {{.host = "etcd.example", .port = 2379}, {.host = "other.example", .port = 2379}};
  options.connectTimeout = options.ioTimeout = 5s;
  Gateway gateway(options, {}, [addresses](const std::string& host, std::uint16_t) {
    return host == "etcd.example" ? Location(addresses) : throw StreamBroken("no such host");
  });
  std::vector<BatchedCall> calls(40, {.body = "{}"});
  gateway.callAll("/path", calls, systemClock()->now() + 10s);
  for (const BatchedCall& each : calls) EXPECT_TRUE(each.answer) << each.cause;
  EXPECT_EQ(gateway.current(), 0U) << "it is no fault of the member";
}

TEST(EtcdAddresses, OneThatIsSilentIsLeftForAnotherOne) {
  const Member member;
  const Poco::Net::ServerSocket silent(Poco::Net::SocketAddress("127.0.0.1", 0));  // It accepts nothing.
  const std::vector<Poco::Net::SocketAddress> addresses{silent.address(), {"127.0.0.1", member.port()}};
  EtcdOptions options;
  options.members = {{.host = "etcd.example", .port = 2379}};
  options.connectTimeout = options.ioTimeout = 500ms;
  Gateway gateway(options, {}, [addresses](const auto&, auto) { return Location(addresses); });
  const auto until = systemClock()->now() + 10s;
  EXPECT_NO_THROW((void)gateway.call("/path", "{}", until, Effect::none));
  std::vector<BatchedCall> calls(4, {.body = "{}"});
  gateway.callAll("/path", calls, until);
  for (const BatchedCall& each : calls) EXPECT_TRUE(each.answer) << each.cause;
}

}  // namespace
}  // namespace lockkeeper::etcd

#include "wire/mux/channel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "lockkeeper/driver/fork_guard.h"
#include "lockkeeper/error.h"
#include "lockkeeper/testing/fake_clock.h"
#include "scripted_server.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;
using Peer = ScriptedServer::Peer;

/// A channel to a scripted server.
class Client {
 public:
  explicit Client(std::uint16_t port, std::chrono::milliseconds ioTimeout = 5s, Environment given = {})
      : environment(std::move(given)),
        connector(optionsFor(port, ioTimeout), environment),
        channel(connector) {}

  Instant in(std::chrono::milliseconds length) const { return environment.clock->now() + length; }

  /// Sends "PING <text>" and returns the first reply.
  Reply ask(const std::string& text, std::chrono::milliseconds patience = 5s) {
    Request request;
    request.add({"PING", text});
    channel.execute(request, in(patience));
    return request.reply(0);
  }

  Environment environment;
  Connector connector;
  Channel channel;

 private:
  static RedisOptions optionsFor(std::uint16_t port, std::chrono::milliseconds ioTimeout) {
    RedisOptions options;
    options.port = port;
    options.ioTimeout = ioTimeout;
    return options;
  }
};

void echoRest(Peer& peer) {
  while (true) peer.say(bulk(peer.command()[1]));
}

void echo(Peer& peer, int) {
  peer.logIn();
  echoRest(peer);
}

TEST(Channel, ManyThreadsShareOneConnectionAndEachGetsItsOwnReplies) {
  ScriptedServer server(echo);
  Client client(server.port());
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (int thread = 0; thread < 16; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 300; ++round) {
        const std::string first = std::to_string(thread) + "/" + std::to_string(round);
        Request request;
        request.add({"PING", first});
        request.add({"PING", first + "b"});
        client.channel.execute(request, client.in(20s));
        right += request.reply(0).text == first && request.reply(1).text == first + "b";
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, 16 * 300);
  EXPECT_EQ(server.connections(), 1);
}

TEST(Channel, RequestsCanBeSentBeforeAnyIsAwaited) {
  ScriptedServer server(echo);
  Client client(server.port());
  Request first;
  Request second;
  first.add({"PING", "1"});
  second.add({"PING", "2"});
  client.channel.submit(first, client.in(5s));
  client.channel.submit(second, client.in(5s));
  client.channel.await(second, client.in(5s));
  client.channel.await(first, client.in(5s));
  EXPECT_EQ(first.reply(0).text, "1");
  EXPECT_EQ(second.reply(0).text, "2");
  EXPECT_LE(first.sentAt(), second.sentAt());
}

TEST(Channel, AReplyThatComesTooLateIsNobodyElses) {
  std::promise<void> goOn;
  ScriptedServer server([&](Peer& peer, int) {
    peer.logIn();
    const std::string first = peer.command()[1];
    goOn.get_future().wait();
    peer.say(bulk(first));
    echoRest(peer);
  });
  Client client(server.port());
  Request late;
  late.add({"PING", "late"});
  client.channel.submit(late, client.in(5s));
  EXPECT_THROW(client.channel.await(late, client.in(30ms)), OutcomeUnknown);
  {
    Request abandoned;
    abandoned.add({"PING", "abandoned"});
    client.channel.submit(abandoned, client.in(5s));
  }
  goOn.set_value();
  EXPECT_EQ(client.ask("mine").text, "mine");
  EXPECT_EQ(server.connections(), 1);
}

TEST(Channel, AServerThatFallsSilentIsLeftAfterTheIoTimeout) {
  ScriptedServer server([](Peer& peer, int connection) {
    if (connection > 1) return echo(peer, connection);
    peer.logIn();
    while (true) peer.command();
  });
  Client client(server.port(), 500ms);
  try {
    client.ask("1", 1h);
    ADD_FAILURE() << "answered";
  } catch (const OutcomeUnknown& fault) {
    EXPECT_NE(std::string(fault.what()).find("I/O timeout"), std::string::npos) << fault.what();
  }
  EXPECT_EQ(client.ask("2").text, "2");
  EXPECT_EQ(server.connections(), 2);
}

TEST(Channel, NoCutOfAReplyIsAReply) {
  const std::string whole = "*2\r\n:1\r\n:1700000000000000\r\n";
  ScriptedServer server([&](Peer& peer, int connection) {
    peer.logIn();
    peer.command();
    peer.say(whole.substr(0, static_cast<std::size_t>(connection) - 1));
  });
  Client client(server.port());
  for (std::size_t cut = 0; cut < whole.size(); ++cut) EXPECT_THROW(client.ask("x"), OutcomeUnknown) << cut;
  EXPECT_EQ(client.ask("x").items.size(), 2U);
}

TEST(Channel, GarbageEndsTheConnection) {
  ScriptedServer server([](Peer& peer, int connection) {
    if (connection > 2) return echo(peer, connection);
    peer.logIn();
    peer.command();
    peer.say(connection == 1 ? "OK\r\n" : "+OK\r\n+more\r\n");
    while (true) peer.command();
  });
  Client client(server.port());
  EXPECT_THROW(client.ask("1"), ProtocolError);
  EXPECT_EQ(client.ask("2").text, "OK");
  EXPECT_EQ(client.ask("3").text, "3");
  EXPECT_EQ(server.connections(), 3);
}

TEST(Channel, AnIdleConnectionThatTheServerClosedIsNotUsedAgain) {
  std::promise<void> closed;
  ScriptedServer server([&](Peer& peer, int connection) {
    if (connection > 1) return echo(peer, connection);
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    peer.close();
    closed.set_value();
  });
  const auto clock = std::make_shared<testing::FakeClock>();
  Environment environment;
  environment.clock = clock;
  Client client(server.port(), 1h, environment);
  EXPECT_EQ(client.ask("1", 1h).text, "1");
  closed.get_future().wait();
  clock->advance(10s);
  EXPECT_EQ(client.ask("2", 1h).text, "2");
  EXPECT_EQ(server.connections(), 2);
}

TEST(Channel, AfterAFailedConnectCallsFailAtOnceUntilTheNextAttemptIsDue) {
  std::uint16_t port = 0;
  {
    ScriptedServer gone([](Peer&, int) {});
    port = gone.port();
  }
  const auto clock = std::make_shared<testing::FakeClock>();
  Environment environment;
  environment.clock = clock;
  Client client(port, 1h, environment);
  EXPECT_THROW(client.ask("1", 1h), StoreUnavailable);
  ScriptedServer server(echo, port);
  EXPECT_THROW(client.ask("2", 1h), StoreUnavailable);
  EXPECT_EQ(server.connections(), 0) << "the backoff was not kept";
  clock->advance(20ms);
  EXPECT_EQ(client.ask("3", 1h).text, "3");
}

// More than the buffers of a loopback connection take, so that its writer has to wait for the server.
constexpr int megabytes = 32;

void addLarge(Request& request) {
  const std::string megabyte(1 << 20, 'x');
  for (int command = 0; command < megabytes; ++command) request.add({"PING", megabyte});
}

// Answers `count` commands, the first of which has been read already.
void answer(Peer& peer, int count) {
  peer.say("+OK\r\n");
  for (int command = 1; command < count; ++command) {
    peer.command();
    peer.say("+OK\r\n");
  }
}

TEST(Channel, ACallerWithoutPatienceIsNoReasonForOthersToWait) {
  ScriptedServer server(echo);
  Client client(server.port());
  EXPECT_THROW(client.ask("late already", -1s), StoreUnavailable);
  EXPECT_EQ(client.ask("in time").text, "in time");
}

TEST(Channel, WhatWasNotHandedToTheSocketIsNeverSent) {
  std::promise<void> writing;
  std::promise<void> goOn;
  ScriptedServer server([&](Peer& peer, int) {
    peer.logIn();
    peer.command();
    writing.set_value();
    goOn.get_future().wait();
    answer(peer, megabytes);
    echoRest(peer);
  });
  Client client(server.port(), 20s);
  std::jthread blocked([&] {
    Request large;
    addLarge(large);
    large.add({"PING", "last"});
    client.channel.execute(large, client.in(20s));
    EXPECT_EQ(large.reply(megabytes).text, "last");
  });
  writing.get_future().wait();
  EXPECT_THROW(client.ask("unsent", 20ms), StoreUnavailable);
  std::jthread behind([&] { EXPECT_EQ(client.ask("behind", 20s).text, "behind"); });
  goOn.set_value();
  blocked.join();
  behind.join();
  EXPECT_EQ(client.ask("after").text, "after");
  EXPECT_EQ(server.connections(), 1);
}

TEST(Channel, WhenTheConnectionEndsWhatWasNotHandedOverIsKnownNotToBeApplied) {
  std::promise<void> writing;
  std::promise<void> goOn;
  ScriptedServer server([&](Peer& peer, int) {
    peer.logIn();
    peer.command();
    writing.set_value();
    goOn.get_future().wait();
  });
  Client client(server.port(), 20s);
  std::jthread blocked([&] {
    Request large;
    addLarge(large);
    EXPECT_THROW(client.channel.execute(large, client.in(20s)), OutcomeUnknown);
  });
  writing.get_future().wait();
  Request behind;
  behind.add({"PING", "behind"});
  client.channel.submit(behind, client.in(20s));
  goOn.set_value();
  EXPECT_THROW(client.channel.await(behind, client.in(20s)), StoreUnavailable);
}

TEST(Channel, WhoLeavesMakesAnotherOneRead) {
  std::promise<void> firstTwo;
  std::promise<void> last;
  ScriptedServer server([&](Peer& peer, int) {
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    for (int command = 0; command < 3; ++command) peer.command();
    firstTwo.get_future().wait();
    peer.say("+1\r\n+2\r\n");
    last.get_future().wait();
    peer.say("+3\r\n");
    echoRest(peer);
  });
  const auto clock = std::make_shared<testing::FakeClock>();
  Environment environment;
  environment.clock = clock;
  Client client(server.port(), 1h, environment);
  client.ask("0", 1h);  // Else some would wait for the connection, not for their replies.
  const auto ask = [&] { return client.ask("x", 1h).text; };
  auto one = std::async(std::launch::async, ask);
  auto two = std::async(std::launch::async, ask);
  ASSERT_TRUE(clock->awaitWaiters(1)) << "one of the two reads, the other one waits for it";
  auto three = std::async(std::launch::async, ask);
  ASSERT_TRUE(clock->awaitWaiters(2));
  firstTwo.set_value();
  EXPECT_NE(one.get(), two.get());
  last.set_value();
  EXPECT_EQ(three.wait_for(20s), std::future_status::ready) << "nobody reads";
  clock->advance(2h);
  EXPECT_EQ(three.get(), "3");
}

TEST(Channel, AWriterThatHasItsRepliesLeavesNothingUnsent) {
  std::promise<void> writingFirst;
  std::promise<void> goOn;
  std::promise<void> writingSecond;
  std::promise<void> finish;
  ScriptedServer server([&](Peer& peer, int) {
    peer.logIn();
    peer.command();
    writingFirst.set_value();
    goOn.get_future().wait();
    answer(peer, megabytes);
    peer.say(bulk(peer.command()[1]));  // the small one behind the first large one
    peer.command();
    writingSecond.set_value();
    finish.get_future().wait();
    answer(peer, megabytes);
    echoRest(peer);
  });
  const auto clock = std::make_shared<testing::FakeClock>();
  Environment environment;
  environment.clock = clock;
  Client client(server.port(), 1h, environment);
  const auto sendLarge = [&] {
    Request large;
    addLarge(large);
    client.channel.execute(large, client.in(1h));
    return large.reply(megabytes - 1).text;
  };
  auto first = std::async(std::launch::async, sendLarge);
  writingFirst.get_future().wait();
  // The first one's thread will send these together, and have its own replies before it has finished.
  Request small;
  small.add({"PING", "small"});
  client.channel.submit(small, client.in(1h));
  Request second;
  addLarge(second);
  client.channel.submit(second, client.in(1h));
  Request third;
  third.add({"PING", "third"});
  client.channel.submit(third, client.in(1h));
  goOn.set_value();
  client.channel.await(small, client.in(1h));
  writingSecond.get_future().wait();

  const auto await = [&](Request& request) {
    return std::async(std::launch::async, [&] { client.channel.await(request, client.in(1h)); });
  };
  auto awaitSecond = await(second);
  auto awaitThird = await(third);
  ASSERT_TRUE(clock->awaitWaiters(1)) << "one of the two reads, the other one waits for it";
  auto unsent = std::async(std::launch::async, [&] { return client.ask("unsent", 1h).text; });
  ASSERT_TRUE(clock->awaitWaiters(2));
  finish.set_value();
  EXPECT_EQ(first.get(), "OK");
  awaitSecond.get();
  awaitThird.get();
  EXPECT_EQ(third.reply(0).text, "third");
  EXPECT_EQ(unsent.wait_for(20s), std::future_status::ready) << "nobody writes";
  clock->advance(2h);
  EXPECT_EQ(unsent.get(), "unsent");
}

TEST(Channel, AForkedChildIsToldApart) {
  const ForkGuard guard;
  guard.check();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int code = guard.inherited() ? 0 : 1;
    try {
      guard.check();
      code = 2;
    } catch (const ForkedError&) {
    }
    if (ForkGuard().inherited()) code = 3;
    ::_exit(code);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(guard.inherited());
}

}  // namespace
}  // namespace lockkeeper::redis

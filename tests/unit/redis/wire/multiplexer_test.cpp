#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/error.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/fake_random.h"
#include "multiplexer_client.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;
using Peer = ScriptedServer::Peer;

TEST(Multiplexer, ManyThreadsShareOneConnectionAndEachGetsItsOwnReplies) {
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
        client.server.execute(request, client.in(20s));
        right += request.reply(0).text == first && request.reply(1).text == first + "b";
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, 16 * 300);
  EXPECT_EQ(server.connections(), 1);
}

TEST(Multiplexer, AReplyThatComesTooLateIsNobodyElses) {
  std::promise<void> goOn;
  ScriptedServer server([&](Peer& peer, int) {
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    const std::string first = peer.command()[1];
    goOn.get_future().wait();
    peer.say(bulk(first));
    echoRest(peer);
  });
  Client client(server.port());
  EXPECT_EQ(client.ask("connect").text, "connect");
  EXPECT_THROW(client.ask("late", 200ms), OutcomeUnknown);
  goOn.set_value();
  EXPECT_EQ(client.ask("mine").text, "mine");
  EXPECT_EQ(server.connections(), 1);
}

TEST(Multiplexer, AServerThatFallsSilentIsLeftAfterTheIoTimeout) {
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
  std::this_thread::sleep_for(20ms);  // the first pause before it is dialled again
  EXPECT_EQ(client.ask("2").text, "2");
  EXPECT_EQ(server.connections(), 2);
}

TEST(Multiplexer, NoCutOfAReplyIsAReply) {
  const std::string whole = "*2\r\n:1\r\n:1700000000000000\r\n";
  ScriptedServer server([&](Peer& peer, int connection) {
    peer.logIn();
    peer.command();
    peer.say(whole.substr(0, static_cast<std::size_t>(connection) - 1));
  });
  const auto clock = std::make_shared<testing::FakeClock>();
  Client client(server.port(), clock);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_THROW(client.ask("x"), OutcomeUnknown) << cut;
    clock->advance(1s);  // it is not dialled at once
  }
  EXPECT_EQ(client.ask("x").items.size(), 2U);
}

TEST(Multiplexer, GarbageEndsTheConnection) {
  ScriptedServer server([](Peer& peer, int connection) {
    if (connection > 2) return echo(peer, connection);
    peer.logIn();
    peer.command();
    peer.say(connection == 1 ? "OK\r\n" : "+OK\r\n+more\r\n");
    while (true) peer.command();
  });
  const auto clock = std::make_shared<testing::FakeClock>();
  Client client(server.port(), clock);
  EXPECT_THROW(client.ask("1"), ProtocolError);
  clock->advance(1s);  // it is not dialled at once
  EXPECT_EQ(client.ask("2").text, "OK");
  EXPECT_EQ(client.ask("3").text, "3");
  EXPECT_EQ(server.connections(), 3);
}

TEST(Multiplexer, AnIdleConnectionThatTheServerClosedIsNotUsedAgain) {
  std::promise<void> closed;
  ScriptedServer server([&](Peer& peer, int connection) {
    if (connection > 1) return echo(peer, connection);
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    peer.close();
    closed.set_value();
  });
  const auto clock = std::make_shared<testing::FakeClock>();
  Client client(server.port(), clock);
  EXPECT_EQ(client.ask("1", 1h).text, "1");
  closed.get_future().wait();
  clock->advance(10s);
  EXPECT_EQ(client.ask("2", 1h).text, "2");
  EXPECT_EQ(server.connections(), 2);
}

TEST(Multiplexer, AfterAFailedConnectCallsFailAtOnceUntilTheNextAttemptIsDue) {
  const std::uint16_t port = unusedPort();
  const auto clock = std::make_shared<testing::FakeClock>();
  Client client(port, clock);
  EXPECT_THROW(client.ask("1", 1h), StoreUnavailable);
  ScriptedServer server(echo, port);
  EXPECT_THROW(client.ask("2", 1h), StoreUnavailable);
  EXPECT_EQ(server.connections(), 0) << "the backoff was not kept";
  clock->advance(20ms);
  EXPECT_EQ(client.ask("3", 1h).text, "3");
}

TEST(Multiplexer, TheWaitForTheNextAttemptDoublesFromTwentyToFiveHundredMilliseconds) {
  const std::uint16_t port = unusedPort();
  const auto clock = std::make_shared<testing::FakeClock>();
  Environment environment = Client::environmentWith(clock);
  environment.random = std::make_shared<testing::FakeRandom>();
  int attempts = 0;
  RedisOptions options;
  options.host = "redis.example";
  const Resolver resolve = [&](const std::string&, std::uint16_t) {
    ++attempts;
    return std::vector<Poco::Net::SocketAddress>{{"127.0.0.1", port}};
  };
  Multiplexer server({options}, environment, {}, {.resolve = resolve});
  const auto ask = [&] {
    Request request;
    request.add({"PING"});
    EXPECT_THROW(server.execute(request, clock->now() + 1h), StoreUnavailable);
  };
  ask();
  testing::FakeRandom same;
  for (const auto length : {20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms}) {
    const std::chrono::nanoseconds half = length / 2;
    const auto wait = half + std::chrono::nanoseconds(same.upTo(static_cast<std::uint64_t>(half.count())));
    const int before = attempts;
    clock->advance(wait - 1ns);
    ask();
    EXPECT_EQ(attempts, before) << length.count();
    clock->advance(1ns);
    ask();
    EXPECT_EQ(attempts, before + 1) << length.count();
  }
}

TEST(Multiplexer, ACallerWithoutPatienceIsNoReasonForOthersToWait) {
  ScriptedServer server(echo);
  Client client(server.port());
  EXPECT_THROW(client.ask("late already", -1s), StoreUnavailable);
  EXPECT_EQ(client.ask("in time").text, "in time");
}

TEST(Multiplexer, OnlyTheConnectionThatWasMeantIsEnded) {
  ScriptedServer server([](Peer& peer, int connection) {
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    if (connection > 1) echoRest(peer);
  });
  Client client(server.port());
  Request first;
  first.add({"PING", "1"});
  client.server.execute(first, client.in(5s));
  EXPECT_THROW(client.ask("lost"), Error);
  Request second;
  second.add({"PING", "2"});
  client.server.execute(second, client.in(5s));
  client.server.disconnect(0, first.connection(), "an answer on the first connection was malformed");
  EXPECT_EQ(client.ask("3").text, "3");
  EXPECT_EQ(server.connections(), 2);
  client.server.disconnect(0, second.connection(), "one on the second was");
  EXPECT_EQ(client.ask("4").text, "4");
  EXPECT_EQ(server.connections(), 3);
}

TEST(Multiplexer, AServerThatIsNotTheMasterAnyMoreIsLeft) {
  const std::vector<std::string> replies = {
      "-READONLY You can't write against a read only replica.\r\n",
      "-ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write against a read "
      "only "
      "replica.\r\n",
      "*2\r\n:1\r\n-READONLY You can't write against a read only replica.\r\n"};
  ScriptedServer server([&](Peer& peer, int connection) {
    peer.logIn();
    const auto index = static_cast<std::size_t>(connection) - 1;
    if (index == replies.size()) return echoRest(peer);
    peer.command();
    peer.say(replies[index]);
    while (true) peer.command();
  });
  Client client(server.port());
  for (std::size_t index = 0; index < replies.size(); ++index) EXPECT_NE(client.ask("x").text, "x");
  EXPECT_EQ(client.ask("master").text, "master");
}

TEST(Multiplexer, WhatMustArriveIsSentUntilTheNodeHasDoneIt) {
  std::atomic<int> times{0};
  ScriptedServer server([&](Peer& peer, int) {
    peer.logIn();
    while (true) {
      const bool release = peer.command()[1] == "release";
      if (release) ++times;
      peer.say(!release    ? "+OK\r\n"
               : times < 4 ? "-LOADING Redis is loading the dataset in memory\r\n"
                           : ":1\r\n");
    }
  });
  Client client(server.port());
  Request release;
  release.add({"PING", "release"});
  AskRules rules;
  rules.mustArrive = true;
  client.server.ask(release, rules, client.in(5s));
  // Any call carries it.
  const Instant end = client.in(20s);
  while (times < 4 && client.in(0s) < end) (void)client.ask("call");
  EXPECT_EQ(times, 4);
  std::this_thread::sleep_for(60ms);  // When it would be sent again.
  (void)client.ask("call");
  EXPECT_EQ(times, 4) << "it was done";
  EXPECT_EQ(server.connections(), 1);
}

TEST(Multiplexer, TriesTheAddressesOfANameOneAfterTheOther) {
  ScriptedServer replica([](Peer& peer, int) { peer.logIn("\r\nredis_version:7.0.15\r\nrole:slave\r\n"); });
  ScriptedServer silent([](Peer& peer, int) {
    while (true) peer.command();
  });
  ScriptedServer master(echo);
  const std::vector<std::uint16_t> ports = {unusedPort(), replica.port(), silent.port(), master.port()};
  const Resolver resolve = [&](const std::string& host, std::uint16_t) {
    EXPECT_EQ(host, "redis.example");
    std::vector<Poco::Net::SocketAddress> addresses;
    for (const std::uint16_t port : ports) addresses.emplace_back("127.0.0.1", port);
    return addresses;
  };
  RedisOptions options;
  options.host = "redis.example";
  options.connectTimeout = 800ms;
  const Environment environment;
  Multiplexer server({options}, environment, {}, {.resolve = resolve});
  Request request;
  request.add({"PING", "here"});
  server.execute(request, environment.clock->now() + 5s);
  EXPECT_EQ(request.reply(0).text, "here");
}

struct Notes final : Listener {
  void on(const Event& event) override { texts.emplace_back(event.text); }
  std::vector<std::string> texts;
};

TEST(Multiplexer, WhatACrashDoesIsToldOnceAlsoOfAServerThatHidesItsRunId) {
  ScriptedServer server([](Peer& peer, int) {
    peer.logIn("\r\nredis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrole:master\r\naof_enabled:0\r\n");
    peer.say(bulk(peer.command()[1]));
    peer.command();
  });
  const auto notes = std::make_shared<Notes>();
  Environment environment;
  environment.listener = notes;
  Client client(server.port(), 5s, environment);
  for (int connection = 1; connection <= 2; ++connection) {
    EXPECT_EQ(client.ask("1").text, "1");
    EXPECT_THROW(client.ask("lost"), Error);
  }
  EXPECT_EQ(server.connections(), 2);
  ASSERT_EQ(notes->texts.size(), 1U);
  EXPECT_NE(notes->texts.front().find("no append-only file"), std::string::npos);
}

TEST(Multiplexer, WhoLeavesMakesAnotherOneRead) {
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
  Client client(server.port(), clock);
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

TEST(Multiplexer, AForkedChildIsToldApart) {
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

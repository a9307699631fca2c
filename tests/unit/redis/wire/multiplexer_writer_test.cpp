// Who writes for all, to a server that takes its time to read.

#include <gtest/gtest.h>

#include <future>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/fake_clock.h"
#include "multiplexer_client.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;
using Peer = ScriptedServer::Peer;

// More than the buffers of a loopback connection take, so that its writer has to wait for the server.
constexpr int megabytes = 32;

void addLarge(Request& request) {
  const std::string megabyte(1 << 20, 'x');
  for (int command = 0; command < megabytes; ++command) request.add({"PING", megabyte});
}

/// A server that reads the first command of a large request, and no more until goOn().
class PausingServer {
 public:
  explicit PausingServer(std::function<void(Peer&)> afterwards)
      : afterwards_(std::move(afterwards)), server_([this](Peer& peer, int) {
          peer.logIn();
          peer.command();
          pausing_.set_value();
          goOn_.get_future().wait();
          afterwards_(peer);
        }) {}

  /// Until the pause has begun: the writer can finish only after goOn().
  void awaitPause() { pausing_.get_future().wait(); }
  void goOn() { goOn_.set_value(); }
  const ScriptedServer& operator*() const { return server_; }

 private:
  const std::function<void(Peer&)> afterwards_;
  std::promise<void> pausing_;
  std::promise<void> goOn_;
  ScriptedServer server_;
};

void answerAll(Peer& peer) {
  peer.say("+OK\r\n");
  for (int command = 1; command < megabytes; ++command) {
    peer.command();
    peer.say("+OK\r\n");
  }
  echoRest(peer);
}

TEST(MultiplexerWriter, WhatWasNotHandedToTheSocketIsNeverSent) {
  PausingServer server(answerAll);
  Client client((*server).port(), 20s);
  std::jthread blocked([&] {
    Request large;
    addLarge(large);
    large.add({"PING", "last"});
    client.server.execute(large, client.in(20s));
    EXPECT_EQ(large.reply(megabytes).text, "last");
  });
  server.awaitPause();
  EXPECT_THROW(client.ask("unsent", 20ms), StoreUnavailable);
  std::jthread behind([&] { EXPECT_EQ(client.ask("behind", 20s).text, "behind"); });
  server.goOn();
  blocked.join();
  behind.join();
  EXPECT_EQ(client.ask("after").text, "after");
  EXPECT_EQ((*server).connections(), 1);
}

TEST(MultiplexerWriter, WhenTheConnectionEndsWhatWasNotHandedOverIsKnownNotToBeApplied) {
  PausingServer server([](Peer& peer) { peer.close(); });
  const auto clock = std::make_shared<testing::FakeClock>();
  Client client((*server).port(), clock);
  std::jthread blocked([&] {
    Request large;
    addLarge(large);
    EXPECT_THROW(client.server.execute(large, client.in(1h)), OutcomeUnknown);
  });
  server.awaitPause();
  std::jthread behind([&] { EXPECT_THROW(client.ask("behind", 1h), StoreUnavailable); });
  EXPECT_TRUE(clock->awaitWaiters(1)) << "both are in line: one polls, and the other one waits for it";
  server.goOn();
}

TEST(MultiplexerWriter, AWriterThatLeavesInTheMidstLeavesTheRestToOthers) {
  PausingServer server(answerAll);
  Client client((*server).port(), 20s);
  Request large;
  addLarge(large);
  AskRules rules;
  rules.enough = [](const Request&) { return true; };
  client.server.ask(large, rules, client.in(20s));
  EXPECT_EQ(large.answers().front().state, Answer::State::late) << "it is on its way";
  auto patient = std::async(std::launch::async, [&] { return client.ask("patient", 20s).text; });
  server.goOn();
  EXPECT_EQ(patient.get(), "patient");
  EXPECT_EQ(client.ask("after").text, "after");
  EXPECT_EQ((*server).connections(), 1);
}

// The writer wants no reply, so it leaves as soon as it may. While it sends its own command another caller
// adds one, and while it sends that one too, a third caller does, whose command somebody else has to send.
TEST(MultiplexerWriter, AWriterThatHasWhatItCameForLeavesNothingUnsent) {
  constexpr std::size_t rounds = 40;
  constexpr std::size_t waiters = 2;
  std::counting_semaphore<> arrived(0);
  ScriptedServer server([&](Peer& peer, int) {
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    // Nobody gets a reply that would wake him before all are here who wait for one, whoever comes last.
    std::size_t commands = 0;
    for (std::size_t waiting = 0; waiting < waiters + 2 * rounds; ++commands) {
      const std::string text = peer.command()[1];
      if (text == "give up") break;
      if (text == "third") arrived.release();
      if (!text.starts_with("first")) ++waiting;
    }
    for (std::size_t command = 0; command < commands; ++command) peer.say("+OK\r\n");
  });
  const auto clock = std::make_shared<testing::FakeClock>();
  Client client(server.port(), clock);
  client.ask("connect", 1h);
  const auto ask = [&](const std::string& text) { return client.ask(text, 1h).text; };
  std::vector<std::future<std::string>> asked;
  for (std::size_t waiter = 0; waiter < waiters; ++waiter)
    asked.push_back(std::async(std::launch::async, ask, "waiter"));
  ASSERT_TRUE(clock->awaitWaiters(1)) << "one of the two polls, the other one waits for it";

  const std::string large(1 << 19, 'x');  // takes a moment to send, and fits into the socket's buffers
  for (std::size_t round = 0; round < rounds; ++round) {
    std::promise<void> second;
    std::promise<void> third;
    bool secondBegun = false;
    bool thirdBegun = false;
    // Both begin while the writer has the mutex, so that they have it next.
    const auto begin = [](std::promise<void>& who, bool& begun) {
      if (!std::exchange(begun, true)) who.set_value();
    };
    AskRules rules;
    rules.unfit = [&](std::size_t, Instant) { return begin(second, secondBegun), std::string(); };
    rules.enough = [&](const Request&) { return begin(third, thirdBegun), true; };
    const auto askAfter = [&ask](std::promise<void>& begun, const std::string& text) {
      return std::async(std::launch::async, [&ask, text, due = begun.get_future()]() mutable {
        due.wait();
        return ask(text);
      });
    };
    asked.push_back(askAfter(second, large));
    asked.push_back(askAfter(third, "third"));
    Request first;
    first.add({"PING", "first" + large});
    client.server.ask(first, rules, client.in(1h));
    if (arrived.try_acquire_for(20s)) continue;
    ADD_FAILURE() << "nobody sends what the third caller of round " << round << " has added";
    Request nudge;
    nudge.add({"PING", "give up"});
    client.server.ask(nudge, rules, client.in(1h));
    break;
  }
  for (std::future<std::string>& each : asked) EXPECT_EQ(each.get(), "OK");
  EXPECT_EQ(server.connections(), 1);
}

}  // namespace
}  // namespace lockkeeper::redis

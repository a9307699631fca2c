// When a server that lets us in, but is of no use, is dialled again.

#include <gtest/gtest.h>

#include <optional>

#include "lockkeeper/error.h"
#include "multiplexer_client.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

class Redial : public ::testing::Test {
 protected:
  // How many connections have been made after another question.
  int connectionsAfterACall() {
    EXPECT_THROW(client->ask("x", 1h), Error);
    return server->connections();
  }
  void serve(ScriptedServer::Serve what) {
    server.emplace(std::move(what));
    client.emplace(server->port(), clock);
  }

  const std::shared_ptr<testing::FakeClock> clock = std::make_shared<testing::FakeClock>();
  std::optional<ScriptedServer> server;
  std::optional<Client> client;
};

TEST_F(Redial, OneThatDropsTheFirstCommandIsDialledAsOneThatRefuses) {
  serve([](ScriptedServer::Peer& peer, int) {
    peer.logIn();
    peer.command();
  });
  EXPECT_EQ(connectionsAfterACall(), 1);
  int connections = 1;
  // As Backoff has it: at least half of each length, which doubles.
  for (const auto length : {20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms}) {
    clock->advance(length / 2 - 1ms);
    EXPECT_EQ(connectionsAfterACall(), connections) << length.count();
    clock->advance(length / 2 + 1ms);
    EXPECT_EQ(connectionsAfterACall(), ++connections) << length.count();
  }
}

TEST_F(Redial, OneThatHasAnsweredIsDialledAgainAtOnce) {
  serve([](ScriptedServer::Peer& peer, int) {
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    peer.command();
  });
  for (int connection = 1; connection <= 5; ++connection) {
    EXPECT_EQ(client->ask("x", 1h).text, "x");
    EXPECT_EQ(connectionsAfterACall(), connection);
  }
}

TEST_F(Redial, AnAnswerEndsTheBackoff) {
  serve([](ScriptedServer::Peer& peer, int connection) {
    peer.logIn();
    if (connection == 5) peer.say(bulk(peer.command()[1]));
    peer.command();
  });
  for (int connection = 1; connection <= 4; ++connection) {
    EXPECT_EQ(connectionsAfterACall(), connection);
    clock->advance(1s);
  }
  EXPECT_EQ(client->ask("x", 1h).text, "x");
  EXPECT_EQ(connectionsAfterACall(), 5);
  EXPECT_EQ(connectionsAfterACall(), 6) << "at once";
  clock->advance(20ms);
  EXPECT_EQ(connectionsAfterACall(), 7) << "after the shortest pause";
}

}  // namespace
}  // namespace lockkeeper::redis

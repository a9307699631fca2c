#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>

#include "lockkeeper/error.h"
#include "multiplexer_client.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;
using Peer = ScriptedServer::Peer;

/// What became of commands.
struct Outcomes {
  std::atomic<int> complete = 0;
  std::atomic<int> failed = 0;
  std::atomic<int> gone = 0;
  std::string text;  // of the last one
  ErrorCode code{};
};

class Noted final : public Posted {
 public:
  explicit Noted(Outcomes& outcomes) : outcomes_(outcomes) {}
  ~Noted() override { ++outcomes_.gone; }

  void ended() noexcept override {
    outcomes_.text = complete ? reply.text : why;
    outcomes_.code = code;
    ++(complete ? outcomes_.complete : outcomes_.failed);
  }

 private:
  Outcomes& outcomes_;
};

class PostedCommands : public ::testing::Test {
 protected:
  bool post(Client& client, const std::string& text) {
    Request request;
    request.add({"PING", text});
    return client.server.post(request, std::make_unique<Noted>(outcomes));
  }

  Outcomes outcomes;
};

TEST_F(PostedCommands, TheNextCallerReadsTheReply) {
  ScriptedServer server(echo);
  Client client(server.port());
  EXPECT_FALSE(post(client, "not connected yet"));
  client.ask("connect");
  EXPECT_TRUE(post(client, "posted"));
  EXPECT_EQ(client.ask("mine").text, "mine");
  EXPECT_EQ(outcomes.complete, 1);
  EXPECT_EQ(outcomes.text, "posted");
}

TEST_F(PostedCommands, WhoAwaitsThemReadsAllThatWerePostedBefore) {
  ScriptedServer server(echo);
  Client client(server.port());
  client.ask("connect");
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(post(client, std::to_string(i)));
  client.server.awaitPosted(client.in(20s));
  EXPECT_EQ(outcomes.complete, 100);
  EXPECT_EQ(outcomes.text, "99");
  client.server.awaitPosted(client.in(1h));
}

TEST_F(PostedCommands, WhoAwaitsThemBesideACallerIsWokenUp) {
  std::promise<void> answerPosted;
  std::promise<void> answerCaller;
  ScriptedServer server([&](Peer& peer, int) {
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    const std::string posted = peer.command()[1];
    const std::string asked = peer.command()[1];
    answerPosted.get_future().wait();
    peer.say(bulk(posted));
    answerCaller.get_future().wait();
    peer.say(bulk(asked));
    peer.command();
  });
  Client client(server.port());
  client.ask("connect");
  EXPECT_TRUE(post(client, "posted"));
  auto caller = std::async(std::launch::async, [&] { return client.ask("mine", 1min).text; });
  auto awaits = std::async(std::launch::async, [&] { client.server.awaitPosted(client.in(1min)); });
  answerPosted.set_value();
  EXPECT_EQ(awaits.wait_for(20s), std::future_status::ready);
  answerCaller.set_value();
  EXPECT_EQ(caller.get(), "mine");
  EXPECT_EQ(outcomes.complete, 1);
}

TEST_F(PostedCommands, AConnectionThatEndsIsAnOutcome) {
  ScriptedServer server([](Peer& peer, int connection) {
    if (connection > 1) return echo(peer, connection);
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    peer.command();
  });
  Client client(server.port());
  client.ask("connect");
  EXPECT_TRUE(post(client, "posted"));
  client.server.awaitPosted(client.in(20s));
  EXPECT_EQ(outcomes.failed, 1);
  EXPECT_EQ(outcomes.code, ErrorCode::outcomeUnknown);
}

TEST_F(PostedCommands, AServerThatSaysNothingIsLeftAfterTheIoTimeout) {
  ScriptedServer server([](Peer& peer, int) {
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    while (true) peer.command();
  });
  Client client(server.port(), 500ms);
  client.ask("connect");
  EXPECT_TRUE(post(client, "posted"));
  client.server.awaitPosted(client.in(1h));
  EXPECT_EQ(outcomes.failed, 1);
  EXPECT_NE(outcomes.text.find("I/O timeout"), std::string::npos) << outcomes.text;
}

TEST_F(PostedCommands, AThousandAndTwentyFourAreUnderWayAtMost) {
  std::promise<void> goOn;
  ScriptedServer server([&](Peer& peer, int) {
    peer.logIn();
    peer.say(bulk(peer.command()[1]));
    goOn.get_future().wait();
    echoRest(peer);
  });
  Client client(server.port());
  client.ask("connect");
  int posted = 0;
  while (posted < 2000 && post(client, "posted")) ++posted;
  EXPECT_EQ(posted, 1024);
  goOn.set_value();
  client.server.awaitPosted(client.in(20s));
  EXPECT_EQ(outcomes.complete, 1024);
  EXPECT_TRUE(post(client, "posted"));
}

TEST_F(PostedCommands, TheEndOfTheClientTellsNobody) {
  ScriptedServer server(echo);
  {
    Client client(server.port());
    client.ask("connect");
    EXPECT_TRUE(post(client, "posted"));
  }
  EXPECT_EQ(outcomes.gone, 1);
  EXPECT_EQ(outcomes.complete + outcomes.failed, 0);
}

}  // namespace
}  // namespace lockkeeper::redis

#include "store/redis_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lockkeeper/testing/fake_clock.h"
#include "wire/scripted_server.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

TEST(RedisStore, DoesNotWaitForWhatTheServerSaysOfItselfNowAndThen) {
  const ScriptedServer server([](ScriptedServer::Peer& peer, int) {
    peer.logIn();
    EXPECT_EQ(peer.command().front(), "GET");
    peer.say("$-1\r\n");
    EXPECT_EQ(peer.command().front(), "INFO");
    EXPECT_EQ(peer.command().front(), "GET") << "before the other one is answered";
    peer.say(bulk(goodInfo) + "$-1\r\n");
  });
  RedisOptions options;
  options.port = server.port();
  Environment environment;
  const auto clock = std::make_shared<testing::FakeClock>();
  environment.clock = clock;
  RedisStore store(options, environment);
  for (int call = 0; call < 2; ++call) {
    Request request;
    request.add({"GET", "k"});
    store.execute(request, clock->now() + 1min);
    EXPECT_EQ(request.reply(0).kind, ReplyKind::nil);
    clock->advance(5s);
  }
}

TEST(RedisStore, AScanBeginsAnewAtAnotherServerThanTheOneThatHasNamedThePlace) {
  std::mutex mutex;
  std::vector<std::string> cursors;
  const ScriptedServer server([&](ScriptedServer::Peer& peer, int connection) {
    peer.logIn("\nrun_id:run" + std::to_string(connection) + goodInfo);
    while (true) {
      const std::string cursor = peer.command().at(1);
      const std::lock_guard guard(mutex);
      cursors.push_back(cursor);
      peer.say("*2\r\n" + bulk(cursor == "0" ? "17" : "5") + "*0\r\n");
    }
  });
  RedisOptions options;
  options.port = server.port();
  RedisStore one(options, Environment{});
  RedisStore other(options, Environment{});
  const Instant deadline = systemClock()->now() + 10s;
  const std::string place = one.scanPage("", "", "", deadline).next;
  EXPECT_TRUE(one.scanPage("", "", place, deadline).next.ends_with(" 5"));
  EXPECT_TRUE(other.scanPage("", "", place, deadline).next.ends_with(" 17"));
  const std::lock_guard guard(mutex);
  EXPECT_EQ(cursors, (std::vector<std::string>{"0", "17", "17", "0"}));
}

}  // namespace
}  // namespace lockkeeper::redis

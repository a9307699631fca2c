#include "store/redis_store.h"

#include <gtest/gtest.h>

#include <memory>

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

}  // namespace
}  // namespace lockkeeper::redis

#include <gtest/gtest.h>

#include <string>

#include "lockkeeper/error.h"
#include "scripted_server.h"
#include "wire/dial/dialer.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

/// Goes on until it is connected.
void connect(Dialer& dialer) {
  Clock& clock = *dialer.environment().clock;
  Dial dial(dialer, clock.now());
  while (!dial.advance(clock.now())) {
    pollfd awaited = dial.awaited();
    ::poll(&awaited, 1, 10);
  }
}

struct Failure {
  ErrorCode code;
  std::string text;
};

Failure failureOf(RedisOptions options, const ScriptedServer& server) {
  options.port = server.port();
  const Environment environment;
  Dialer dialer(options, environment);
  try {
    connect(dialer);
  } catch (const Error& fault) {
    EXPECT_EQ(std::string(fault.what()).find("hunter2"), std::string::npos) << fault.what();
    EXPECT_NE(std::string(fault.what()).find(dialer.store()), std::string::npos) << fault.what();
    return {fault.code(), fault.what()};
  }
  ADD_FAILURE() << "connected";
  return {};
}

TEST(LogIn, SendsWhatTheOptionsSayInOneOrder) {
  std::vector<std::vector<std::string>> seen;
  ScriptedServer server([&](ScriptedServer::Peer& peer, int) {
    for (const char* const reply : {"+OK\r\n", "+OK\r\n", "+OK\r\n", ":0\r\n"}) {
      seen.push_back(peer.command());
      peer.say(reply);
    }
    seen.push_back(peer.command());
    peer.say(bulk(goodInfo + "aof_enabled:1\r\n"));
    seen.push_back(peer.command());
    peer.say("*2\r\n" + bulk("appendfsync") + bulk("always"));
  });
  RedisOptions options;
  options.port = server.port();
  options.user = "ann";
  options.password = "hunter2";
  options.database = 3;
  options.minReplicas = 1;
  const Environment environment;
  Dialer dialer(options, environment);
  connect(dialer);
  const std::vector<std::vector<std::string>> expected = {
      {"AUTH", "ann", "hunter2"}, {"SELECT", "3"}, {"CLIENT", "SETNAME", "lockkeeper"},
      {"WAIT", "0", "1"},         {"INFO"},        {"CONFIG", "GET", "appendfsync"}};
  EXPECT_EQ(seen, expected);
  EXPECT_NE(dialer.durability().find("no append-only file"), std::string::npos) << dialer.durability();
}

TEST(LogIn, NamesWhatTheServerRefuses) {
  struct Case {
    const char* reply;
    ErrorCode code;
    const char* text;
  };
  for (const Case& each : {
           Case{"-WRONGPASS invalid username-password pair hunter2\r\n", ErrorCode::config, "password"},
           Case{"-ERR AUTH <password> called without any password configured\r\n", ErrorCode::config,
                "no password"},
           Case{"-NOPERM this user\r\n", ErrorCode::config, "+set"},
           Case{"-DENIED Redis is running in protected mode\r\n", ErrorCode::config, "protected"},
           Case{"-LOADING Redis is loading the dataset in memory\r\n", ErrorCode::storeUnavailable,
                "LOADING"},
           Case{"-MASTERDOWN Link with MASTER is down\r\n", ErrorCode::storeUnavailable, "MASTERDOWN"},
           Case{"-ERR max number of clients reached\r\n", ErrorCode::storeUnavailable, "clients"},
           Case{"-FLIPPED hunter2\r\n", ErrorCode::storeUnavailable, "FLIPPED"},
           Case{"HTTP/1.1 400 Bad Request\r\n\r\n", ErrorCode::protocol, "does not speak the Redis protocol"},
           Case{"$5000000000\r\n", ErrorCode::protocol, "does not speak the Redis protocol"},
           Case{"+O", ErrorCode::storeUnavailable, "closed"},
       }) {
    ScriptedServer server([&](ScriptedServer::Peer& peer, int) {
      peer.command();
      peer.say(each.reply);
    });
    RedisOptions options;
    options.password = "hunter2";
    const Failure failure = failureOf(options, server);
    EXPECT_EQ(failure.code, each.code) << each.reply << failure.text;
    EXPECT_NE(failure.text.find(each.text), std::string::npos) << failure.text;
  }
}

TEST(LogIn, AsksForAPasswordWhereNoneWasGiven) {
  ScriptedServer server([](ScriptedServer::Peer& peer, int) {
    while (true) {
      peer.command();
      peer.say("-NOAUTH Authentication required.\r\n");
    }
  });
  const Failure failure = failureOf({}, server);
  EXPECT_EQ(failure.code, ErrorCode::config);
  EXPECT_NE(failure.text.find("asks for a password"), std::string::npos) << failure.text;
}

// Both may be different in a moment.
TEST(LogIn, WaitsForAMasterThatHasItsData) {
  for (const char* const info : {"\r\nredis_version:7.0.15\r\nrole:slave\r\n",
                                 "\r\nredis_version:7.0.15\r\nrole:master\r\nloading:1\r\n"}) {
    ScriptedServer server([&](ScriptedServer::Peer& peer, int) { peer.logIn(info); });
    EXPECT_EQ(failureOf({}, server).code, ErrorCode::storeUnavailable);
  }
}

TEST(LogIn, ASilentServerCostsTheConnectTimeoutAndNoMore) {
  ScriptedServer server([](ScriptedServer::Peer& peer, int) {
    while (true) peer.command();
  });
  RedisOptions options;
  options.connectTimeout = 50ms;
  const Failure failure = failureOf(options, server);
  EXPECT_EQ(failure.code, ErrorCode::storeUnavailable);
  EXPECT_NE(failure.text.find("timed out"), std::string::npos) << failure.text;
}

TEST(LogIn, ADrippingServerCostsTheConnectTimeoutAndNoMore) {
  ScriptedServer server([](ScriptedServer::Peer& peer, int) {
    peer.say("+");
    while (true) {
      peer.say("a");
      std::this_thread::sleep_for(1ms);
    }
  });
  RedisOptions options;
  options.connectTimeout = 50ms;
  EXPECT_EQ(failureOf(options, server).code, ErrorCode::storeUnavailable);
}

}  // namespace
}  // namespace lockkeeper::redis

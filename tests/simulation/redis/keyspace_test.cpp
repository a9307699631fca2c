// The simulated Redis against the real one: the same commands and scripts, the same replies.
#include <Poco/Redis/Client.h>
#include <Poco/Redis/Command.h>
#include <Poco/Redis/Type.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "redis_server.h"
#include "simulation/redis/keyspace.h"
#include "simulation/redis/script_engine.h"

namespace lockkeeper::simulation {
namespace {

std::int64_t wallMicros() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

class SameAsRedis : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<test::RedisServer>(); }
  static void TearDownTestSuite() { server_ = nullptr; }

  SameAsRedis() { real_.connect("127.0.0.1", server_->port()); }

  std::string ofReal(const Words& words) {
    Poco::Redis::Command command(words[0]);
    for (std::size_t i = 1; i < words.size(); ++i) command << words[i];
    const std::string reply = real_.sendCommand(command)->toString();
    return reply == "*-1\r\n" ? "*0\r\n" : reply;  // how Poco writes an empty array
  }

  static std::unique_ptr<test::RedisServer> server_;
  Poco::Redis::Client real_;
  Keyspace simulated_{&wallMicros};
};

std::unique_ptr<test::RedisServer> SameAsRedis::server_;

// Commands that lockkeeper and its scripts send, with whatever keys and arguments.
class RandomCommands {
 public:
  explicit RandomCommands(std::uint64_t seed) : random_(seed) {}

  Words next() {
    const std::string key = oneOf({"k1", "k2", "k3", "k4", "k5", "k6"});
    switch (upTo(22)) {
      case 0:
        return {"GET", key};
      case 1:
        return {"SET", key, text()};
      case 2:
        return {"SET", key, text(), "NX", "PX", "100000"};
      case 3:
        return {"SET", key, text(), "PX", oneOf({"0", "-1", "x", "70000"})};
      case 4:
        return {"SET", key, number(), "KEEPTTL"};
      case 5:
        return {"DEL", key, oneOf({"k1", "k7"})};
      case 6:
        return {"EXISTS", key, oneOf({"k2", "k7"})};
      case 7:
        return {"INCR", key};
      case 8:
        return {"PEXPIRE", key, oneOf({"90000", "0", "-5", "x", "9223372036854775807"})};
      case 9:
        return {"TYPE", key};
      case 10:
        return {"HSET", key, text(), number(), text(), text()};
      case 11:
        return {"HGET", key, text()};
      case 12:
        return {"HDEL", key, text(), text()};
      case 13:
        return {"LLEN", key};
      case 14:
        return {"LINDEX", key, number()};
      case 15:
        return {"LTRIM", key, number(), number()};
      case 16:
        return {"RPUSH", key, text(), number()};
      case 17:
        return {"ZADD", key, number(), text(), number(), text()};
      case 18:
        return {"ZREM", key, text(), text()};
      case 19:
        return {"ZSCORE", key, text()};
      case 20:
        return {"ZRANGE", key, number(), number()};
      case 21:
        return {"ZRANGE", key, number(), number(), "WITHSCORES"};
      default:
        return {"ZREMRANGEBYSCORE", key, oneOf({"-inf", "1", "x"}), number()};
    }
  }

 private:
  std::uint64_t upTo(std::uint64_t bound) { return random_() % (bound + 1); }
  std::string oneOf(const Words& words) { return words[upTo(words.size() - 1)]; }
  std::string text() { return oneOf({"a", "b", "c", "d", "", "5", "wait 1"}); }
  std::string number() {
    return oneOf({"0", "1", "-1", "2", "17", "9007199254740991", "3.5", "1e3", "x", "01", "+1"});
  }

  std::mt19937_64 random_;
};

TEST_F(SameAsRedis, InEachCommand) {
  RandomCommands commands(20261127);
  std::map<std::string, int> kinds;
  for (int i = 0; i < 20000; ++i) {
    const Words words = commands.next();
    const RedisReply simulated = simulated_.execute(words).value();
    ++kinds[words[0] + (simulated.kind == RedisReply::Kind::error ? " fails" : "")];
    std::string all;
    for (const std::string& word : words) all += word + "|";
    ASSERT_EQ(simulated.encoded(), ofReal(words)) << "command " << i << ": " << all;
  }
  EXPECT_GE(kinds.size(), 35U);
}

TEST_F(SameAsRedis, InExpiry) {
  simulated_.execute({"SET", "e", "1", "PX", "60000"});
  ofReal({"SET", "e", "1", "PX", "60000"});
  EXPECT_EQ(simulated_.execute({"PTTL", "none"})->encoded(), ofReal({"PTTL", "none"}));
  EXPECT_NEAR(static_cast<double>(simulated_.execute({"PTTL", "e"})->number),
              std::stod(ofReal({"PTTL", "e"}).substr(1)), 5000);
  simulated_.execute({"PEXPIREAT", "e", "1"});
  ofReal({"PEXPIREAT", "e", "1"});
  EXPECT_EQ(simulated_.execute({"EXISTS", "e"})->encoded(), ofReal({"EXISTS", "e"}));
}

TEST_F(SameAsRedis, InWhatScriptsReturn) {
  ScriptEngine scripts([this](const Words& words) {
    return simulated_.execute(words).value_or(RedisReply::error("ERR unknown command '" + words[0] + "'"));
  });
  for (const std::string text :
       {"return 1",
        "return 2.9",
        "return -3.7",
        "return 'a'",
        "return true",
        "return false",
        "return nil",
        "return {1, 'b', {2, false}, nil, 3}",
        "return {ok = 'fine'}",
        "return {err = 'ERR no'}",
        "return redis.status_reply('s')",
        "return redis.error_reply('READONLY r')",
        "return redis.sha1hex('x')",
        "return KEYS[1] .. ARGV[2]",
        "return redis.call('SET', KEYS[1], 12345678901234)",
        "return redis.call('GET', KEYS[1])",
        "return redis.pcall('LLEN', KEYS[1])",
        "return redis.pcall('GET', 'none')",
        "return {redis.pcall('TYPE', KEYS[1]).ok}",
        "return redis.call('ZADD', 'z', 2^53, 'm', 1.5, 'n')",
        "return redis.call('ZRANGE', 'z', 0, -1, 'WITHSCORES')",
        "return string.format('%.0f', 2^53)",
        "return tostring(tonumber(ARGV[1]) + 1)",
        "return unpack(ARGV)",
        "local ok, e = pcall(redis.call, 'LLEN', KEYS[1]) return {tostring(ok), type(e)}"}) {
    const RedisReply loaded = scripts.load(text);
    ASSERT_EQ(loaded.kind, RedisReply::Kind::bulk) << text << loaded.text;
    EXPECT_EQ(scripts.evaluate(loaded.text, Words{"key"}, Words{"7", "x"}).encoded(),
              ofReal({"EVAL", text, "1", "key", "7", "x"}))
        << text;
  }
}

}  // namespace
}  // namespace lockkeeper::simulation

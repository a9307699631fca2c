#include "lockkeeper/redis/redlock_options.h"

#include <gtest/gtest.h>

#include "lockkeeper/error.h"
#include "lockkeeper/redis/redlock_driver.h"
#include "refusal.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;
using test::refusalOf;

RedlockOptions redlockOptions(const std::string& uri) {
  return RedlockOptions::fromUri(StoreUri::parse(uri));
}

std::string redlockFault(const std::string& uri) {
  return refusalOf<ConfigError>([&] { redlockOptions(uri); });
}

TEST(RedlockOptions, EachNodeHasItsAddressAndCredentials) {
  const RedlockOptions options = redlockOptions("redlock://a,ann:p%2Cw@b:7000,:q@[::1]:7001/2");
  ASSERT_EQ(options.nodes.size(), 3U);
  EXPECT_EQ(options.nodes[0].host, "a");
  EXPECT_EQ(options.nodes[0].port, 6379);
  EXPECT_EQ(options.nodes[0].password, "");
  EXPECT_EQ(options.nodes[1].user, "ann");
  EXPECT_EQ(options.nodes[1].password, "p,w");
  EXPECT_EQ(options.nodes[2].host, "::1");
  EXPECT_EQ(options.nodes[2].password, "q");
  for (const RedisOptions& node : options.nodes) {
    EXPECT_EQ(node.database, 2U);
    EXPECT_FALSE(node.tls);
  }
  EXPECT_EQ(options.display(), "redlock://a:6379,b:7000,[::1]:7001");
}

TEST(RedlockOptions, EachNodeMayHaveItsOwnDatabaseAndTls) {
  const RedlockOptions options = redlockOptions("redlock://a,b,c/0,3,1?tls=off,on,off");
  ASSERT_EQ(options.nodes.size(), 3U);
  EXPECT_EQ(options.nodes[0].display(), "redis://a:6379/0");
  EXPECT_EQ(options.nodes[1].display(), "rediss://b:6379/3");
  EXPECT_EQ(options.nodes[2].display(), "redis://c:6379/1");
  EXPECT_NE(redlockFault("redlock://a,b,c/0,1").find("one for each of 3"), std::string::npos);
  EXPECT_NE(redlockFault("redlock://a,b,c/0,,1").find("''"), std::string::npos);
  EXPECT_NE(redlockFault("redlock://a,b,c?tls=on,off").find("'on,off'"), std::string::npos);
  EXPECT_NE(redlockFault("redlock://a,b,c?tls=on,off,no").find("'no'"), std::string::npos);
  EXPECT_NE(redlockFault("redlock://a,b,c?tls=off,off,off&caFile=/dev/null").find("tls=on"),
            std::string::npos);
}

TEST(RedlockOptions, HasTheDefaultsThatTheAlgorithmAsksFor) {
  const RedlockOptions options = redlockOptions("redlock://a,b,c");
  EXPECT_EQ(options.restartGuard, 60s);
  EXPECT_FALSE(options.appendFsyncAlways);
  EXPECT_EQ(options.drift, 1U);
  EXPECT_EQ(options.minValidity, 50U);
  EXPECT_FALSE(options.nodeTimeout);
}

TEST(RedlockOptions, ReadsEveryParameter) {
  const RedlockOptions options = redlockOptions(
      "redlock://a,b,c?restartGuard=2m&appendfsync=always&drift=5&minValidity=70&nodeTimeout=80ms&tls=on"
      "&connectTimeout=1s&ioTimeout=3s&clientName=shop&allowEviction=on");
  EXPECT_EQ(options.restartGuard, 2min);
  EXPECT_TRUE(options.appendFsyncAlways);
  EXPECT_EQ(options.drift, 5U);
  EXPECT_EQ(options.minValidity, 70U);
  EXPECT_EQ(options.nodeTimeout, 80ms);
  for (const RedisOptions& node : options.nodes) {
    EXPECT_TRUE(node.tls);
    EXPECT_EQ(node.connectTimeout, 1s);
    EXPECT_EQ(node.ioTimeout, 3s);
    EXPECT_EQ(node.clientName, "shop");
    EXPECT_TRUE(node.allowEviction);
  }
  EXPECT_FALSE(redlockOptions("redlock://a,b,c?restartGuard=off").restartGuard);
}

TEST(RedlockOptions, RefusesWhatMakesNoQuorum) {
  EXPECT_NE(redlockFault("redlock://a").find("1 node:"), std::string::npos) << redlockFault("redlock://a");
  EXPECT_NE(redlockFault("redlock://a,b").find("2 nodes"), std::string::npos);
  EXPECT_EQ(redlockFault("redlock://a,b,c,d"), "accepted");
  EXPECT_NE(redlockFault("redlock://a,b,:s3cr3t@a").find("a:6379 twice"), std::string::npos);
  EXPECT_EQ(redlockFault("redlock://a,b,:s3cr3t@a").find("s3cr3t"), std::string::npos);
  std::string many = "redlock://a0";
  for (int i = 1; i < 32; ++i) many += ",a" + std::to_string(i);
  EXPECT_NE(redlockFault(many).find("32 nodes"), std::string::npos);
}

TEST(RedlockOptions, NamesTheParameterThatIsWrong) {
  for (const auto& [query, named] :
       {std::pair{"restartGuard=0s", "restartGuard"}, std::pair{"restartGuard=999ms", "1s"},
        std::pair{"restartGuard=25h", "24h"}, std::pair{"restartGuard=soon", "soon"},
        std::pair{"appendfsync=no", "always"}, std::pair{"drift=0", "drift"}, std::pair{"drift=26", "25"},
        std::pair{"minValidity=91", "90"}, std::pair{"nodeTimeout=0ms", "nodeTimeout"},
        std::pair{"caFile=/x", "tls=on"}, std::pair{"fence=off", "fence"}, std::pair{"tls=maybe", "maybe"}}) {
    const std::string text = redlockFault(std::string("redlock://a,b,c?") + query);
    EXPECT_NE(text.find(named), std::string::npos) << text;
  }
}

TEST(RedlockOptions, AreCheckedAlsoWhenNoUriWasRead) {
  RedlockOptions options = redlockOptions("redlock://a,b,c");
  options.drift = 0;
  EXPECT_THROW(options.check(), std::invalid_argument);
  options = redlockOptions("redlock://a,b,c");
  options.restartGuard = 10ms;
  EXPECT_THROW(options.check(), std::invalid_argument);
  options = redlockOptions("redlock://a,b,c");
  options.nodes.pop_back();
  EXPECT_THROW(options.check(), std::invalid_argument);
  options = redlockOptions("redlock://a,b,c");
  options.nodes.back().ioTimeout = std::chrono::milliseconds::max();
  EXPECT_THROW(options.check(), std::invalid_argument);
}

TEST(RedlockOptions, ANodeTimeoutOutOfRangeMakesNoDriver) {
  struct Case {
    std::chrono::milliseconds nodeTimeout;
    const char* fault;
  };
  for (const Case& each : {
           Case{-1ms, "nodeTimeout is -1ms: it must be 1ms to 1h"},
           Case{0ms, "nodeTimeout is 0s: it must be 1ms to 1h"},
           Case{1h + 1ms, "nodeTimeout is 3600001ms: it must be 1ms to 1h"},
           Case{std::chrono::milliseconds::max(),
                "nodeTimeout is 9223372036854775807ms: it must be 1ms to 1h"},
           Case{1ms, "accepted"},
           Case{1h, "accepted"},
       }) {
    RedlockOptions options = redlockOptions("redlock://a,b,c");
    options.nodeTimeout = each.nodeTimeout;
    EXPECT_EQ(refusalOf([&] { const RedlockDriver driver(options); }), each.fault);
  }
}

}  // namespace
}  // namespace lockkeeper::redis

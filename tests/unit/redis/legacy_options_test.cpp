#include "lockkeeper/redis/legacy_options.h"

#include <gtest/gtest.h>

#include "lockkeeper/error.h"
#include "lockkeeper/redis/legacy_driver.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "refusal.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;
using test::refusalOf;

LegacyOptions legacyOptions(const std::string& uri) { return LegacyOptions::fromUri(StoreUri::parse(uri)); }

TEST(LegacyOptions, AHostIsEnough) {
  const LegacyOptions options = legacyOptions("redis+legacy://cache.example");
  EXPECT_EQ(options.redis.host, "cache.example");
  EXPECT_EQ(options.keyPrefix, "");
  EXPECT_EQ(options.skewAllowance, 1s);
  EXPECT_FALSE(options.pure);
  EXPECT_FALSE(options.redis.tls);
}

TEST(LegacyOptions, EverythingCanBeSaid) {
  const LegacyOptions options = legacyOptions(
      "redis+legacy://bob:secret@cache:6380/3?keyPrefix=shop%3Alock%3A&skewAllowance=5s&pure=true"
      "&allowEviction=on&connectTimeout=1s&ioTimeout=500ms&clientName=shop&tls=on");
  EXPECT_EQ(options.redis.user, "bob");
  EXPECT_EQ(options.redis.password, "secret");
  EXPECT_EQ(options.redis.port, 6380);
  EXPECT_EQ(options.redis.database, 3U);
  EXPECT_TRUE(options.redis.allowEviction);
  EXPECT_EQ(options.redis.connectTimeout, 1s);
  EXPECT_EQ(options.redis.ioTimeout, 500ms);
  EXPECT_EQ(options.redis.clientName, "shop");
  EXPECT_EQ(options.keyPrefix, "shop:lock:");
  EXPECT_EQ(options.skewAllowance, 5s);
  EXPECT_TRUE(options.pure);
  EXPECT_TRUE(options.redis.tls);
}

TEST(LegacyOptions, WhatIsWrongIsNamed) {
  const auto names = [](const std::string& uri, const std::string& named) {
    const std::string fault = refusalOf<ConfigError>([&] { legacyOptions("redis+legacy://" + uri); });
    EXPECT_NE(fault.find(named), std::string::npos) << fault;
    EXPECT_EQ(fault.find("s3cr3t"), std::string::npos) << fault;
  };
  names(":s3cr3t@h?fence=on", "'fence' is unknown");
  names(":s3cr3t@h?minReplicas=1", "'minReplicas' is unknown");
  names(":s3cr3t@h?skewAllowance=2h", "0s to 1h");
  names(":s3cr3t@h?skewAllowance=-1s", "skewAllowance");
  names(":s3cr3t@h?pure=perhaps", "perhaps");
  names(":s3cr3t@h?keyPrefix=" + std::string(257, 'p'), "at most 256");
  names(":s3cr3t@h?keyPrefix=a:lockkeeper:b", ":lockkeeper:");
  names(":s3cr3t@h1,h2", "exactly one host");
  names(":s3cr3t@h/one", "'one'");
  names(":s3cr3t@h?caFile=/ca.pem", "caFile");
}

TEST(LegacyOptions, AreCheckedAlsoWhenNoUriWasRead) {
  const auto fault = [](auto&& change) -> std::string {
    LegacyOptions options;
    change(options);
    try {
      options.check();
    } catch (const std::invalid_argument& error) {
      EXPECT_THROW(LegacyRedisDriver{options}, std::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  const auto longest = std::chrono::milliseconds::max();
  EXPECT_EQ(fault([](LegacyOptions&) {}), "accepted");
  EXPECT_EQ(fault([](LegacyOptions& o) { o.skewAllowance = -1ms; }),
            "skewAllowance is -1ms: it must be 0s to 1h");
  EXPECT_EQ(fault([&](LegacyOptions& o) { o.skewAllowance = longest; }),
            "skewAllowance is 9223372036854775807ms: it must be 0s to 1h");
  EXPECT_EQ(fault([](LegacyOptions& o) { o.skewAllowance = 1h; }), "accepted");
  EXPECT_EQ(fault([](LegacyOptions& o) { o.redis.ioTimeout = 0ms; }),
            "ioTimeout is 0s: it must be 1ms to 1h");
  EXPECT_NE(fault([](LegacyOptions& o) { o.keyPrefix = std::string(257, 'p'); }).find("at most 256"),
            std::string::npos);
  EXPECT_NE(fault([](LegacyOptions& o) { o.keyPrefix = "a:lockkeeper:b"; }).find(":lockkeeper:"),
            std::string::npos);
}

TEST(LegacyOptions, TheSchemeIsRegistered) {
  StoreRegistry registry;
  use(registry);
  EXPECT_NE(registry.open("redis+legacy://127.0.0.1?keyPrefix=lock:"), nullptr);
}

}  // namespace
}  // namespace lockkeeper::redis

#include "lockkeeper/driver/store_uri.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lockkeeper/error.h"

namespace lockkeeper {
namespace {

std::string refusal(const std::string& uri) {
  try {
    StoreUri::parse(uri);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(StoreUri, TakesApartAllItsForms) {
  const auto uri = StoreUri::parse("redis://us%40er:p%3Ass@host:6380/2?fence=off&caFile=/a%20b");
  EXPECT_EQ(uri.scheme(), "redis");
  ASSERT_EQ(uri.endpoints().size(), 1u);
  EXPECT_EQ(uri.endpoints()[0].user, "us@er");
  EXPECT_EQ(uri.endpoints()[0].password, "p:ss");
  EXPECT_EQ(uri.endpoints()[0].host, "host");
  EXPECT_EQ(uri.endpoints()[0].port, 6380);
  EXPECT_EQ(uri.path(), "/2");
  EXPECT_EQ(uri.parameter("fence"), "off");
  EXPECT_EQ(uri.parameter("caFile"), "/a b");
  EXPECT_EQ(uri.parameter("absent"), std::nullopt);
  EXPECT_EQ(uri.display(), "redis://host:6380/2");

  EXPECT_EQ(StoreUri::parse("memory:").display(), "memory:");
  EXPECT_EQ(StoreUri::parse("redis+unix:///run/redis.sock?db=3").path(), "/run/redis.sock");
  EXPECT_EQ(StoreUri::parse("redis://:secret@h").endpoints()[0].password, "secret");
  EXPECT_EQ(StoreUri::parse("redis://[::1]:7000").endpoints()[0].host, "::1");
  EXPECT_EQ(StoreUri::parse("redis://[::1]:7000").display(), "redis://[::1]:7000");
  const auto nodes = StoreUri::parse("redlock://a:1,u:p@b:2,c");
  ASSERT_EQ(nodes.endpoints().size(), 3u);
  EXPECT_EQ(nodes.endpoints()[1].password, "p");
  EXPECT_EQ(nodes.display(), "redlock://a:1,b:2,c");
}

TEST(StoreUri, TakesPasswordsFromTheEnvironment) {
  setenv("LOCKKEEPER_TEST_PASSWORD", "s3cr@t/?", 1);
  EXPECT_EQ(StoreUri::parse("redis://u:${LOCKKEEPER_TEST_PASSWORD}@h").endpoints()[0].password, "s3cr@t/?");
  EXPECT_EQ(refusal("redis://u:${LOCKKEEPER_TEST_UNSET}@h"),
            "the store's password names the environment variable 'LOCKKEEPER_TEST_UNSET', which is not set");
}

TEST(StoreUri, SaysWhichPartIsWrong) {
  EXPECT_EQ(refusal("redis"),
            "the store's URI does not begin with a scheme, such as memory: or redis://host:6379/0");
  EXPECT_EQ(refusal("redis://h:99999"),
            "the port '99999' of the store's host 'h' is not a number from 1 to 65535");
  EXPECT_EQ(refusal("redis://h:0"), "the port '0' of the store's host 'h' is not a number from 1 to 65535");
  EXPECT_EQ(refusal("redis://u@:6379"), "the store's URI has no host where one is needed");
  for (const auto* two : {"redis://a, mysql+getlock://b", "redis://a,redis://b", "redis://a:1 redis://b",
                          "memory:,redis://a", "redis+legacy://a?keyPrefix=lock:;redis://b"}) {
    EXPECT_EQ(refusal(two), "the store's URI is followed by another one: one store can be named") << two;
  }
  EXPECT_EQ(refusal("redlock://a,b?fenceStore=mysql://u:p@c/d"), "nothing was thrown");
  EXPECT_EQ(refusal("redlock://a,,b"), "the store's URI has no host where one is needed");
  EXPECT_EQ(refusal("redlock://a,b,"), "the store's URI has no host where one is needed");
  EXPECT_EQ(refusal("redis://[::1:6379"), "the store's IPv6 address has no closing ']'");
  EXPECT_EQ(refusal("redis://h?x"), "the store's URI has a parameter that is not written name=value");
  EXPECT_EQ(refusal("redis://h?x=1&x=2"), "the store's parameter 'x' is given twice");
  EXPECT_EQ(refusal("redis://h/%zz"), "the store's path has a '%' without two hexadecimal digits: write %25");
  EXPECT_EQ(refusal("redis://h#x"), "the store's URI has a '#': write %23");
}

TEST(StoreUri, NeverRepeatsASecretHoweverTheUriIsWrong) {
  for (const std::string uri :
       {"redis://user:hunter-two", "redis://user:hunter-two@", "redis://:hunter-two@:1",
        "redis://u:hunter-two/x@h", "redis://u:hunter-two?x@h", "redis://u:hunter-two#@h",
        "redis://u:hunter-two%@h", "hunter-two@redis", "redis://u:hunter-two@h:port",
        "redis://u:hunter-two@h:70000", "redis://u:hunter-two@h?a=1&a=2"}) {
    EXPECT_EQ(refusal(uri).find("hunter-two"), std::string::npos) << uri;
  }
}

TEST(StoreUri, ChecksParameters) {
  const auto uri = StoreUri::parse("redis://h?a=on&b=perhaps&n=7");
  EXPECT_TRUE(uri.flag("a", false));
  EXPECT_TRUE(uri.flag("absent", true));
  EXPECT_THROW(uri.flag("b", true), ConfigError);
  EXPECT_EQ(uri.number("n", 0, 0, 15), 7u);
  EXPECT_EQ(uri.number("absent", 3, 0, 15), 3u);
  EXPECT_THROW(uri.number("n", 0, 0, 6), ConfigError);
  EXPECT_THROW(uri.number("a", 0, 0, 6), ConfigError);
  EXPECT_NO_THROW(uri.allowOnly({"a", "b", "n"}));
  EXPECT_THROW(uri.allowOnly({"a", "b"}), ConfigError);
}

}  // namespace
}  // namespace lockkeeper

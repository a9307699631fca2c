#include "lockkeeper/store_uri.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lockkeeper/error.h"
#include "malformed_uris.h"
#include "refusal.h"

namespace lockkeeper {
namespace {

using namespace std::chrono_literals;
using test::refusalOf;

std::string refusal(const std::string& uri) {
  return refusalOf<ConfigError>([&] { StoreUri::parse(uri); });
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
            "the port of host 1 of the store's URI is not a number from 1 to 65535");
  EXPECT_EQ(refusal("redlock://a,h:0"),
            "the port of host 2 of the store's URI is not a number from 1 to 65535");
  EXPECT_EQ(refusal("redis://[::1]6379"), "host 1 of the store's URI is followed by more than a port");
  EXPECT_EQ(refusal("redis://u@:6379"), "the store's URI has no host where one is needed");
  for (const auto* two : {"redis://a, mysql+getlock://b", "redis://a,redis://b", "redis://a:1 redis://b",
                          "memory:,redis://a", "redis+legacy://a?keyPrefix=lock:;redis://b"}) {
    EXPECT_EQ(refusal(two), "the store's URI is followed by another one: one store can be named") << two;
  }
  EXPECT_EQ(refusal("redlock://a,b?fenceStore=mysql://u:p@c/d"), "accepted");
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

TEST(StoreUri, RefusesAnAtBehindTheHosts) {
  for (const char* wrong :
       {"redis://user:1234/topsecret@h/0", "etcd://h:12/topsecret@h", "redis://u:12?top=secret@h",
        "redis://u:12?topsecret@h", "redis://h?a=%zz&b=c@d", "redis+unix:/a@b"}) {
    EXPECT_EQ(
        refusal(wrong),
        "the store's URI has an '@' after its hosts: write %40, and in a user name or password %2F for '/' "
        "and %3F for '?'")
        << wrong;
  }
  EXPECT_EQ(StoreUri::parse("redis+unix:///a%40b?c=d%40e").path(), "/a@b");
  const std::string credential = "/run/credentials/lockkeeper@report.service/store";
  EXPECT_EQ(StoreUri::parse("redis://h/0?passwordFile=" + credential).parameter("passwordFile"), credential);
  EXPECT_EQ(StoreUri::parse("redlock://a,b?fenceStore=redis://:p@c").parameter("fenceStore"), "redis://:p@c");
}

TEST(StoreUri, NoMessageHasAnyPartOfAUriThatIsWrittenWrongly) {
  unsigned refused = 0;
  for (const std::string& uri : test::malformedUris(10'000, test::MarkedPart::any)) {
    const std::string message = refusal(uri);
    if (message != "accepted") ++refused;
    ASSERT_EQ(message.find(test::uriMarker), std::string::npos) << uri << "\n" << message;
  }
  EXPECT_GT(refused, 5'000U) << "too few of them are malformed";
}

TEST(StoreUri, ReadsTheFirstLineOfAFileAndNoMoreThanALine) {
  for (const std::string path : {"/", "/dev/zero", "/dev/null", "/no/such"}) {
    const auto uri = StoreUri::parse("redis://h?passwordFile=" + path);
    const std::string why = refusalOf<ConfigError>([&] { uri.firstLineOf("passwordFile"); });
    EXPECT_TRUE(why.starts_with("the store's parameter 'passwordFile' is '" + path + "': ")) << why;
    EXPECT_TRUE(why.ends_with("cannot be read")) << why;
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

TEST(StoreUri, ReadsDurationsWithinTheirRange) {
  const auto uri = StoreUri::parse("redis://h?a=1500ms&b=2h&c=0ms&d=5");
  EXPECT_EQ(uri.duration("a", 1s, 1ms, 1h), 1500ms);
  EXPECT_EQ(uri.duration("absent", 3s, 1ms, 1h), 3s);
  EXPECT_EQ(uri.duration("a", 1s, 1500ms, 1500ms), 1500ms);
  const auto refused = [&](const char* name) {
    return refusalOf<ConfigError>([&] { uri.duration(name, 1s, 1ms, 1h); });
  };
  EXPECT_EQ(refused("b"), "the store's parameter 'b' is '2h': it must be 1ms to 1h");
  EXPECT_EQ(refused("c"), "the store's parameter 'c' is '0ms': it must be 1ms to 1h");
  EXPECT_EQ(refused("d").substr(0, 40), "the store's parameter 'd': '5' is not a ");
}

TEST(StoreUri, NamesFilesThatCanBeRead) {
  const auto uri = StoreUri::parse("redis://h?a=/dev/null&b=/no/such&c=");
  EXPECT_EQ(uri.file("a"), "/dev/null");
  EXPECT_EQ(uri.file("absent"), "");
  EXPECT_EQ(refusalOf<ConfigError>([&] { uri.file("b"); }),
            "the store's parameter 'b' is '/no/such': this file cannot be read");
  EXPECT_EQ(refusalOf<ConfigError>([&] { uri.file("c"); }),
            "the store's parameter 'c' is '': this file cannot be read");
  const auto folder = StoreUri::parse("redis://h?a=/");
  EXPECT_EQ(refusalOf<ConfigError>([&] { folder.file("a"); }),
            "the store's parameter 'a' is '/': this file cannot be read");
}

TEST(StoreUri, TakesACertificateWithItsKeyAndOnlyForTls) {
  const auto files = [](const std::string& query, bool tls) {
    return StoreUri::parse("redis://h?" + query).certificateFiles(tls);
  };
  EXPECT_EQ(files("", true).caFile, "");
  EXPECT_EQ(files("caFile=/dev/null", true).caFile, "/dev/null");
  const CertificateFiles both = files("certFile=/dev/null&keyFile=/dev/zero", true);
  EXPECT_EQ(both.certFile, "/dev/null");
  EXPECT_EQ(both.keyFile, "/dev/zero");
  for (const char* one : {"certFile=/dev/null", "keyFile=/dev/null"}) {
    EXPECT_EQ(refusalOf<ConfigError>([&] { files(one, true); }),
              "certFile and keyFile belong together: only one of them is given");
  }
  for (const std::string name : {"caFile", "certFile", "keyFile"}) {
    EXPECT_EQ(refusalOf<ConfigError>([&] { files(name + "=/dev/null", false); }),
              "the store's parameter '" + name + "' is given without tls=on");
    EXPECT_EQ(refusalOf<ConfigError>([&] { files(name + "=/no/such", true); }),
              "the store's parameter '" + name + "' is '/no/such': this file cannot be read");
  }
}

}  // namespace
}  // namespace lockkeeper

#include "lockkeeper/redis/redis_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "lockkeeper/error.h"
#include "lockkeeper/redis/redis_driver.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/redis/value_store.h"
#include "lockkeeper/store_registry.h"
#include "malformed_uris.h"
#include "refusal.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;
using test::refusalOf;

RedisOptions optionsOf(const std::string& uri) { return RedisOptions::fromUri(StoreUri::parse(uri)); }

std::string faultOf(const std::string& uri) {
  return refusalOf<ConfigError>([&] { optionsOf(uri); });
}

std::string faultOf(const RedisOptions& options) {
  return refusalOf([&] { options.check(); });
}

class RedisOptionsTest : public ::testing::Test {
 protected:
  RedisOptionsTest() {
    std::string pattern = ::testing::TempDir() + "lockkeeper-options-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~RedisOptionsTest() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
    return folder_ / name;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(RedisOptionsTest, SentinelsNameAMasterAndADatabase) {
  const std::string secret = file("secret", "let-me-in\n");
  const RedisOptions options = optionsOf("redis+sentinel://keeper:pw@s1,s2:5000,[::1]/my-master/3?tls=on&" +
                                         ("sentinelUser=eve&sentinelPasswordFile=" + secret));
  ASSERT_TRUE(options.sentinel);
  EXPECT_EQ(options.sentinel->master, "my-master");
  EXPECT_EQ(options.sentinel->hosts, (std::vector<std::string>{"s1", "s2", "::1"}));
  EXPECT_EQ(options.sentinel->ports, (std::vector<std::uint16_t>{26379, 5000, 26379}));
  EXPECT_EQ(options.sentinel->user, "eve");
  EXPECT_EQ(options.sentinel->password, "let-me-in");
  EXPECT_TRUE(options.tls);
  EXPECT_TRUE(options.sentinel->tls);
  EXPECT_EQ(options.user, "keeper");
  EXPECT_EQ(options.password, "pw");
  EXPECT_EQ(options.database, 3);
  EXPECT_EQ(options.ioTimeout, 1s);
  EXPECT_EQ(options.display(), "redis+sentinel://s1:26379,s2:5000,[::1]:26379/my-master/3");
  EXPECT_FALSE(optionsOf("redis+sentinel://s1/m?tls=on&sentinelTls=off").sentinel->tls);
  RedisOptions made = options;
  made.sentinel->ports[1] = 0;
  EXPECT_THROW(made.check(), std::invalid_argument);
}

TEST_F(RedisOptionsTest, MistakesInAUriOfSentinelsAreNamed) {
  const std::pair<std::string, std::string> mistakes[] = {
      {"redis+sentinel://s1,s2,s3", "the master's name is ''"},
      {"redis+sentinel://s1/a%20b", "the master's name is 'a b'"},
      {"redis+sentinel:///m", "0 sentinels are named: 1 to 31"},
      {"redis+sentinel://s1,s2,s1:26379/m", "the sentinel s1:26379 is named twice"},
      {"redis+sentinel://s1,u:pw@s2/m", "another sentinel than the first"},
      {"redis+sentinel://s1/m/x", "the database is 'x'"},
      {"redis+sentinel://s1/m?sentinelUser=eve", "'eve' of the sentinels has no password"},
      {"redis+sentinel://s1/m?sentinelPasswordFile=/nowhere",
       "'sentinelPasswordFile' is '/nowhere': this file cannot be read"},
      {"redis+sentinel://s1/m?caFile=" + file("ca.pem", ""), "'caFile' is given without tls=on"},
      {"redis://s1/0?sentinelUser=eve", "'sentinelUser' is unknown"}};
  for (const auto& [uri, message] : mistakes) {
    EXPECT_NE(faultOf(uri).find(message), std::string::npos) << uri << ": " << faultOf(uri);
  }
}

TEST_F(RedisOptionsTest, NoMessageHasAPartOfAPasswordThatIsWrittenWrongly) {
  for (const std::string& uri : test::malformedUris(5'000, test::MarkedPart::password)) {
    const std::string message = refusalOf<std::exception>([&] { optionsOf(uri); });
    ASSERT_EQ(message.find(test::uriMarker), std::string::npos) << uri << "\n" << message;
  }
  EXPECT_EQ(faultOf("redis://topsecret@h"),
            "the store's URI has a user without a password: write user:password@ or :password@");
}

TEST_F(RedisOptionsTest, AHostIsEnough) {
  const RedisOptions options = optionsOf("redis://cache.example");
  EXPECT_EQ(options.host, "cache.example");
  EXPECT_EQ(options.port, 6379);
  EXPECT_EQ(options.database, 0U);
  EXPECT_TRUE(options.fence);
  EXPECT_FALSE(options.tls);
  EXPECT_FALSE(options.allowEviction);
  EXPECT_EQ(options.minReplicas, 0U);
  EXPECT_EQ(options.display(), "redis://cache.example:6379/0");
}

TEST_F(RedisOptionsTest, EverythingCanBeSaid) {
  const RedisOptions options = optionsOf(
      "redis://ann:s%40cret@[::1]:7000/"
      "3?fence=off&fenceKept=2h&allowEviction=true&minReplicas=2&replicaTimeout=250ms"
      "&connectTimeout=1s&ioTimeout=500ms&clientName=shop");
  EXPECT_EQ(options.host, "::1");
  EXPECT_EQ(options.port, 7000);
  EXPECT_EQ(options.database, 3U);
  EXPECT_EQ(options.user, "ann");
  EXPECT_EQ(options.password, "s@cret");
  EXPECT_FALSE(options.fence);
  EXPECT_TRUE(options.allowEviction);
  EXPECT_EQ(options.minReplicas, 2U);
  EXPECT_EQ(options.fenceKept, 2h);
  EXPECT_EQ(options.replicaTimeout, 250ms);
  EXPECT_EQ(options.connectTimeout, 1s);
  EXPECT_EQ(options.ioTimeout, 500ms);
  EXPECT_EQ(options.clientName, "shop");
  EXPECT_EQ(options.display(), "redis://[::1]:7000/3");
}

TEST_F(RedisOptionsTest, UnixSocketsTakeTheirDatabaseAsAParameter) {
  const RedisOptions options = optionsOf("redis+unix:///run/redis.sock?db=5");
  EXPECT_EQ(options.unixPath, "/run/redis.sock");
  EXPECT_EQ(options.database, 5U);
  EXPECT_EQ(options.display(), "redis+unix:///run/redis.sock");
}

TEST_F(RedisOptionsTest, PasswordsMayComeFromAFile) {
  EXPECT_EQ(optionsOf("redis://h?passwordFile=" + file("unix", "s3cret\n")).password, "s3cret");
  EXPECT_EQ(optionsOf("redis://ann@h?passwordFile=" + file("dos", "s3cret\r\nmore\n")).password, "s3cret");
  EXPECT_EQ(optionsOf("redis://h?passwordFile=" + file("bare", "s3cret")).password, "s3cret");
}

TEST_F(RedisOptionsTest, FilesThatCannotBeReadAreNamed) {
  EXPECT_NE(faultOf("redis://h?passwordFile=/no/such").find("/no/such"), std::string::npos);
  EXPECT_NE(faultOf("rediss://h?caFile=/no/such.pem").find("/no/such.pem"), std::string::npos);

  StoreRegistry registry;
  use(registry);
  const std::string notPem = file("ca.pem", "this is no certificate\n");
  try {
    registry.open("rediss://h?caFile=" + notPem);
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& fault) {
    EXPECT_NE(std::string(fault.what()).find(notPem), std::string::npos) << fault.what();
  }
}

TEST_F(RedisOptionsTest, ABadValueIsNamedWithWhatIsAllowed) {
  struct Case {
    const char* uri;
    const char* value;
    const char* allowed;
  };
  for (const Case& each : {
           Case{"redis://h/16x", "16x", "0 to"},
           Case{"redis://h/-1", "-1", "0 to"},
           Case{"redis://h/99999999999", "99999999999", "0 to"},
           Case{"redis+unix:///s?db=x", "x", "0 to"},
           Case{"redis://h?ioTimeout=0ms", "0ms", "1ms to"},
           Case{"redis://h?connectTimeout=2h", "2h", "1h"},
           Case{"redis://h?fenceKept=10ms", "10ms", "1s"},
           Case{"redis://h?replicaTimeout=11s", "11s", "10s"},
           Case{"redis://h?ioTimeout=5", "5", "ioTimeout"},
           Case{"redis://h?minReplicas=-1", "-1", "0 to 100"},
           Case{"redis://h?fence=maybe", "maybe", "on or off"},
           Case{"redis://h?allowEviction=1", "1", "on or off"},
           Case{"redis://h?clientName=a%20b", "a b", "printable"},
           Case{"redis://h?clientName=", "clientName", "1 to 64"},
           Case{"redis://h?color=red", "color", "ioTimeout"},
           Case{"redis://h?caFile=/x", "caFile", "passwordFile"},
           Case{"redis://h?db=1", "db", "passwordFile"},
           Case{"redis://h1,h2", "redis", "one host"},
           Case{"redis:", "redis", "one host"},
           Case{"redis+unix://h/s", "redis+unix", "no host"},
           Case{"redis+unix://", "", "bytes"},
           Case{"redis://ann@h", "user without a password", "user:password@"},
       }) {
    const std::string fault = faultOf(each.uri);
    EXPECT_NE(fault.find(each.value), std::string::npos) << each.uri << ": " << fault;
    EXPECT_NE(fault.find(each.allowed), std::string::npos) << each.uri << ": " << fault;
    EXPECT_EQ(fault.find('\n'), std::string::npos) << fault;
  }
  EXPECT_NE(faultOf("redis+unix:///" + std::string(120, 'x')).find("107"), std::string::npos);
}

TEST_F(RedisOptionsTest, AreCheckedAlsoWhenNoUriWasRead) {
  EXPECT_NO_THROW(RedisOptions{}.check());
  struct Case {
    std::chrono::milliseconds RedisOptions::*option;
    std::chrono::milliseconds value;
    const char* fault;
  };
  const auto longest = std::chrono::milliseconds::max();
  for (const Case& each : {
           Case{&RedisOptions::ioTimeout, 0ms, "ioTimeout is 0s: it must be 1ms to 1h"},
           Case{&RedisOptions::ioTimeout, -1ms, "ioTimeout is -1ms: it must be 1ms to 1h"},
           Case{&RedisOptions::ioTimeout, longest,
                "ioTimeout is 9223372036854775807ms: it must be 1ms to 1h"},
           Case{&RedisOptions::connectTimeout, 0ms, "connectTimeout is 0s: it must be 1ms to 1h"},
           Case{&RedisOptions::connectTimeout, 2h, "connectTimeout is 2h: it must be 1ms to 1h"},
           Case{&RedisOptions::fenceKept, 999ms, "fenceKept is 999ms: it must be 1s to 8760h"},
           Case{&RedisOptions::replicaTimeout, 0ms, "replicaTimeout is 0s: it must be 1ms to 10s"},
           Case{&RedisOptions::replicaTimeout, 11s, "replicaTimeout is 11s: it must be 1ms to 10s"},
           Case{&RedisOptions::ioTimeout, 1h, "accepted"},
           Case{&RedisOptions::connectTimeout, 1ms, "accepted"},
           Case{&RedisOptions::replicaTimeout, 10s, "accepted"},
       }) {
    RedisOptions options;
    options.*each.option = each.value;
    EXPECT_EQ(faultOf(options), each.fault);
    if (faultOf(options) == "accepted") continue;
    EXPECT_THROW(RedisDriver{options}, std::invalid_argument) << each.fault;
    EXPECT_THROW(RedisValues{options}, std::invalid_argument) << each.fault;
  }
  RedisOptions options;
  options.minReplicas = 101;
  EXPECT_EQ(faultOf(options), "minReplicas is 101: 0 to 100 are allowed");
}

TEST_F(RedisOptionsTest, SecretsNeverShow) {
  const std::string secretFile = file("secret", "hunter2\n");
  for (const std::string uri : {"redis://ann:hunter2@h/x", "redis://:hunter2@h?ioTimeout=x",
                                "redis://:hunter2@h,i", "redis://:hunter2@h?color=red"}) {
    const std::string fault = faultOf(uri);
    EXPECT_NE(fault, "accepted") << uri;
    EXPECT_EQ(fault.find("hunter2"), std::string::npos) << fault;
  }
  const std::string both = faultOf("redis://:other@h?passwordFile=" + secretFile);
  EXPECT_NE(both.find("passwordFile"), std::string::npos) << both;
  EXPECT_EQ(both.find("hunter2"), std::string::npos) << both;
  EXPECT_EQ(optionsOf("redis://ann:hunter2@h").display().find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace lockkeeper::redis

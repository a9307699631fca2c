#include "getlock/getlock_options.h"

#include "lockkeeper/error.h"
#include "malformed_uris.h"
#include "refusal.h"

#include <gtest/gtest.h>

namespace lockkeeper::mysql {
namespace {

using namespace std::chrono_literals;

GetLockOptions read(const std::string& rest) {
  return GetLockOptions::fromUri(StoreUri::parse("mysql+getlock://shop:s3cr3t@db.shop/" + rest));
}

std::string refusal(const std::string& rest) {
  try {
    (void)read(rest);
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).find("s3cr3t"), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << rest << " was accepted";
  return "";
}

void expectRefused(const std::string& rest, const std::string& named) {
  EXPECT_NE(refusal(rest).find(named), std::string::npos) << refusal(rest) << " does not name " << named;
}

TEST(GetLockOptions, NoMessageHasAPartOfAPasswordThatIsWrittenWrongly) {
  for (const std::string& uri : test::malformedUris(5'000, test::MarkedPart::password, "mysql+getlock")) {
    const std::string message =
        test::refusalOf<std::exception>([&] { GetLockOptions::fromUri(StoreUri::parse(uri)); });
    ASSERT_EQ(message.find(test::uriMarker), std::string::npos) << uri << "\n" << message;
  }
  const std::string message = test::refusalOf<std::exception>(
      [] { GetLockOptions::fromUri(StoreUri::parse("mysql+getlock://u:12,topsecret@h/d")); });
  EXPECT_EQ(message.find("topsecret"), std::string::npos) << message;
}

TEST(GetLockOptions, HaveTheDefaultsThatTheyDocument) {
  const GetLockOptions options = read("locks");
  EXPECT_TRUE(options.fence);
  EXPECT_FALSE(options.createTable);
  EXPECT_EQ(options.connections, 16U);
  EXPECT_EQ(options.connectTimeout, 2s);
  EXPECT_EQ(options.ioTimeout, 3s);
  EXPECT_EQ(options.socket, "");
}

TEST(GetLockOptions, AreReadFromTheUri) {
  const GetLockOptions options = read(
      "locks?fence=off&createTable=true&connections=3&connectTimeout=5s&ioTimeout=250ms&socket=/run/my.sock");
  EXPECT_FALSE(options.fence);
  EXPECT_TRUE(options.createTable);
  EXPECT_EQ(options.connections, 3U);
  EXPECT_EQ(options.connectTimeout, 5s);
  EXPECT_EQ(options.ioTimeout, 250ms);
  EXPECT_EQ(options.socket, "/run/my.sock");
}

TEST(GetLockOptions, RefuseWhatTheyDoNotKnowAndNameIt) {
  expectRefused("locks?conections=3", "conections");
  expectRefused("locks?connections=0", "'0'");
  expectRefused("locks?connections=257", "256");
  expectRefused("locks?connectTimeout=1500ms", "1500ms");
  expectRefused("locks?connectTimeout=0s", "0s");
  expectRefused("locks?ioTimeout=2m", "2m");
  expectRefused("locks?fence=maybe", "maybe");
  expectRefused("locks?socket=my.sock", "my.sock");
  expectRefused("locks?socket=/" + std::string(107, 's'), "107");
  expectRefused("lo'cks", "lo'cks");
  expectRefused("", "database");
}

TEST(GetLockOptions, AskForTlsOnlyWhenTold) {
  EXPECT_FALSE(read("locks").tls);
  EXPECT_TRUE(read("locks?tls=on").tls);
  EXPECT_EQ(read("locks?tls=on").files.caFile, "") << "the system's authorities";
  EXPECT_EQ(read("locks?tls=on&caFile=/dev/null").files.caFile, "/dev/null");
}

TEST(GetLockOptions, NeverEncryptLessThanTheUriSeemsToSay) {
  expectRefused("locks?tls=maybe", "maybe");
  expectRefused("locks?caFile=/dev/null", "tls=on");
  expectRefused("locks?tls=off&caFile=/dev/null", "tls=on");
  expectRefused("locks?tls=on&caFile=/no/such.pem", "/no/such.pem");
  expectRefused("locks?tls=on&socket=/run/my.sock", "tls is for TCP");
}

}  // namespace
}  // namespace lockkeeper::mysql

#include "lockkeeper/driver/server_login.h"

#include <gtest/gtest.h>

#include <string>

#include "lockkeeper/base/hex.h"
#include "lockkeeper/base/random.h"
#include "lockkeeper/base/token.h"
#include "lockkeeper/error.h"
#include "refusal.h"

namespace lockkeeper {
namespace {

using test::refusalOf;

ServerLogin read(const std::string& rest) {
  return ServerLogin::read(StoreUri::parse("db://" + rest),
                           {.defaultPort = 5432, .longestSocket = 20, .longestDatabase = 8});
}

std::string refusalOfLogin(const std::string& rest) {
  return refusalOf<ConfigError>([&] { (void)read(rest); });
}

TEST(ServerLogin, SaysWhereAndAsWhomToConnect) {
  const ServerLogin login = read("me:p%40ss@a,b:7,[::1]/shop?tls=on&verify=off");
  ASSERT_EQ(login.hosts.size(), 3U);
  EXPECT_EQ(login.hosts[0].port, 5432);
  EXPECT_EQ(login.hosts[1].port, 7);
  EXPECT_EQ(login.hosts[2].host, "::1");
  EXPECT_EQ(login.hosts[2].display, "db://[::1]:5432/shop");
  EXPECT_EQ(login.user, "me");
  EXPECT_EQ(login.password, "p@ss");
  EXPECT_EQ(login.database, "shop");
  EXPECT_EQ(login.display, "db://a,b:7,[::1]/shop");
  EXPECT_TRUE(login.tls);
  EXPECT_FALSE(login.verify);
  EXPECT_EQ(read("me@a/shop").hosts[0].display, "db://a/shop");
  EXPECT_EQ(read("me@a/shop?socket=/run/db").socket, "/run/db");
}

TEST(ServerLogin, NamesWhatIsWrongAndNoSecret) {
  EXPECT_EQ(refusalOfLogin("me:s3cr3t@a,a:5432/shop"), "the store names the host a:5432 twice");
  EXPECT_EQ(refusalOfLogin("me@a/shop?socket=run"),
            "the store's parameter 'socket' is 'run': it must be an absolute path of at most 20 bytes");
  EXPECT_EQ(refusalOfLogin("me@a,b/shop?socket=/run"),
            "both socket and several hosts are given: a socket leads to one server");
  EXPECT_EQ(refusalOfLogin("me@a/shop?socket=/run&tls=on"), "both tls and socket are given: tls is for TCP");
  EXPECT_EQ(refusalOfLogin("me@a/shop?verify=off"), "verify is given without tls=on");
  EXPECT_EQ(refusalOfLogin("me@a/too_long_a_name"),
            "the database name is 'too_long_a_name': at most 8 characters are allowed");
  EXPECT_EQ(refusalOfLogin("me:s3cr3t%00@a/shop"), "the database's password must not contain NUL");
  EXPECT_NE(refusalOfLogin("me@a,you:s3cr3t@b/shop").find("host 2"), std::string::npos);
}

TEST(ServerLogin, NamesOfTablesAreReadFromTheUri) {
  const StoreUri uri = StoreUri::parse("db://a/shop?table=locks&other=a-b");
  EXPECT_EQ(uri.name("table", "unused", 63), "locks");
  EXPECT_EQ(uri.name("schema", "public", 63), "public");
  const auto refused = [&](std::string_view name, std::size_t longest) {
    return refusalOf<ConfigError>([&] { (void)uri.name(name, "", longest); });
  };
  EXPECT_EQ(refused("table", 4), "the table name is 'locks': at most 4 characters are allowed");
  EXPECT_EQ(refused("other", 63), "the other name is 'a-b': 1 to 64 characters of [A-Za-z0-9_] are allowed");
}

TEST(Hex, IsReadAsItWasWritten) {
  const std::string bytes("\x00\x7f\xff", 3);
  EXPECT_EQ(toHex(bytes), "007fff");
  EXPECT_EQ(fromHex("007fff"), bytes);
  EXPECT_EQ(fromHex(""), "");
  for (const char* wrong : {"0", "0g", "0F", " 0"}) EXPECT_EQ(fromHex(wrong), std::nullopt) << wrong;
}

TEST(Hex, OfATokenIsTheTokenAgain) {
  const Token token = Token::generate(*systemRandom());
  EXPECT_EQ(Token::fromBytes(token.bytes()), token);
  EXPECT_EQ(token.hex().size(), 2 * Token::size);
}

}  // namespace
}  // namespace lockkeeper

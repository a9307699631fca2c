#include "store/claim.h"

#include <set>

#include "lockkeeper/testing/treacherous_keys.h"

#include <gtest/gtest.h>

namespace lockkeeper::etcd {
namespace {

TEST(EtcdClaim, EveryKeyHasAPathOfItsOwnWithoutSlashes) {
  std::set<std::string> paths;
  for (const std::string& key : testing::treacherousKeys()) {
    const std::string path = encoded(key);
    EXPECT_TRUE(paths.insert(path).second) << path;
    EXPECT_EQ(path.find('/'), std::string::npos);
    EXPECT_EQ(decoded(path), key);
  }
}

TEST(EtcdClaim, APrefixOfAKeyIsAPrefixOfItsPath) {
  const std::string key("a/b%\0\xFF/c", 8);
  for (std::size_t length = 0; length <= key.size(); ++length) {
    EXPECT_TRUE(encoded(key).starts_with(encoded(key.substr(0, length)))) << length;
  }
}

TEST(EtcdClaim, WhatEncodesNoKeyIsNone) {
  for (const char* text : {"", "%", "%2", "a%", "%2G", "%2F%", "a b", "a/b", "%AF"}) {
    EXPECT_EQ(decoded(text), std::nullopt) << text;
  }
}

TEST(EtcdClaim, ItsNameTellsNothingOfItsToken) {
  const Token token = Token::generate(*systemRandom());
  const Token other = Token::generate(*systemRandom());
  EXPECT_EQ(digestOf(token), digestOf(token));
  EXPECT_NE(digestOf(token), digestOf(other));
  EXPECT_EQ(digestOf(token).size(), 40U);
  EXPECT_EQ(digestOf(token).find(token.hex().substr(0, 8)), std::string::npos);
}

TEST(EtcdClaim, ItsValueNamesTheOwner) {
  const Token token = Token::generate(*systemRandom());
  EXPECT_EQ(ownerIn(valueOf({.key = "k", .token = token, .owner = "web:1"})), "web:1");
  EXPECT_EQ(ownerIn(valueOf({.key = "k", .token = token, .owner = ""})), "");
  for (const std::string& foreign : {std::string("foreign"), token.hex() + "x", token.hex().substr(1)}) {
    EXPECT_EQ(ownerIn(foreign), std::nullopt) << foreign;
  }
}

}  // namespace
}  // namespace lockkeeper::etcd

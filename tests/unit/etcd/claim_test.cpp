#include "store/claim.h"

#include <set>
#include <stdexcept>
#include <string>

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

TEST(EtcdClaim, ItsValueNamesTheOwnerAndTheShare) {
  const Token token = Token::generate(*systemRandom());
  for (const std::string owner : {"web:1", ""}) {
    const Claim whole{.key = "k", .token = token, .owner = owner};
    Claim share = whole;
    share.share = Share{2, 5};
    const auto text = textIn(valueOf(whole));
    ASSERT_TRUE(text);
    EXPECT_EQ(text->owner, owner);
    EXPECT_EQ(text->share, std::nullopt);
    EXPECT_EQ(waitingValueOf(whole), valueOf(whole)) << "its place says it";
    const auto shared = textIn(valueOf(share));
    ASSERT_TRUE(shared);
    EXPECT_EQ(shared->owner, owner);
    EXPECT_EQ(shared->share, share.share);
    EXPECT_FALSE(shared->waits);
    ASSERT_TRUE(textIn(waitingValueOf(share)));
    EXPECT_TRUE(textIn(waitingValueOf(share))->waits);
    EXPECT_EQ(asGranted(waitingValueOf(share)), valueOf(share));
    EXPECT_EQ(asGranted(valueOf(whole)), valueOf(whole));
    share.share->limit = 1;  // a resize leaves its permits to who has them
    EXPECT_EQ(withLimit(valueOf({.key = "k", .token = token, .owner = owner, .share = Share{2, 5}}), 1),
              valueOf(share));
    EXPECT_TRUE(textIn(valueOf(share)));
  }
}

TEST(EtcdClaim, OnlyAShareIsMarkedAsOneThatWaits) {
  const std::string token = Token::generate(*systemRandom()).hex();
  EXPECT_FALSE(textIn(token + "?"));
  EXPECT_FALSE(textIn(token + "@web:1?")->waits) << "the owner's last character";
  for (const std::string& other : {std::string("foreign"), token + "@web:1"}) {
    EXPECT_THROW((void)withLimit(other, 3), std::invalid_argument) << other;
  }
}

}  // namespace
}  // namespace lockkeeper::etcd

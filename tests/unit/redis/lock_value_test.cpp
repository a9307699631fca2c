#include "lock/lock_value.h"

#include <gtest/gtest.h>

#include "lockkeeper/testing/fake_random.h"

namespace lockkeeper::redis {
namespace {

TEST(LockValue, IsTheTokenAndTheLabel) {
  testing::FakeRandom random;
  const Token token = Token::generate(random);
  EXPECT_EQ(lockValue({"key", token, "host:1"}), token.hex() + "@host:1");
  EXPECT_EQ(lockValue({"key", token, ""}), token.hex());
  EXPECT_EQ(ownerIn(lockValue({"key", token, "host:1"})), "host:1");
  EXPECT_EQ(ownerIn(lockValue({"key", token, ""})), "");
}

TEST(LockValue, ShowsWhomTheKeyIsOfferedTo) {
  const std::string token(32, 'a');
  EXPECT_EQ(ownerIn(token + "@host:1@"), "host:1");
  EXPECT_EQ(ownerIn(token + "@"), "");
  EXPECT_EQ(withoutOffer(token + "@host:1@"), token + "@host:1");
  EXPECT_EQ(withoutOffer(token + "@host:1"), token + "@host:1");
}

TEST(LockValue, ValuesOfOtherClientsHaveNoOwner) {
  const std::string token(32, 'a');
  for (const std::string& foreign :
       {std::string(), std::string("1700000000"), token.substr(1), token + "host", token + "a@host",
        std::string(32, 'A') + "@host", std::string(32, 'g'), "@" + token,
        std::string("0b2f0c3e-8d7a-4c1b-9f2e-5a6b7c8d9e0f")}) {
    EXPECT_EQ(ownerIn(foreign), std::nullopt) << foreign;
  }
}

}  // namespace
}  // namespace lockkeeper::redis

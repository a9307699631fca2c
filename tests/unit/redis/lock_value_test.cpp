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
  EXPECT_EQ(textIn(lockValue({"key", token, "host:1"}))->owner, "host:1");
  EXPECT_EQ(textIn(lockValue({"key", token, ""}))->owner, "");
  for (const std::string owner : {"host:1", ""}) {
    const auto text = textIn(lockValue({.key = "key", .token = token, .owner = owner, .share = Share{2, 5}}));
    ASSERT_TRUE(text);
    EXPECT_EQ(text->owner, owner);
    EXPECT_EQ(text->share, (Share{2, 5}));
  }
}

}  // namespace
}  // namespace lockkeeper::redis

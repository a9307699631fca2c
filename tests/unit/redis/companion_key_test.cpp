#include "store/companion_key.h"

#include <gtest/gtest.h>

#include <bitset>
#include <set>
#include <string>
#include <vector>

#include "lockkeeper/base/key.h"

namespace lockkeeper::redis {
namespace {

const std::vector<std::string> keys = {"stock",
                                       "shop:stock:42",
                                       "{shop}:stock",
                                       "a{b}c{d}",
                                       "x}{y}",
                                       "a}b",
                                       "{}x",
                                       "{}{x}",
                                       "}{",
                                       "{",
                                       "}",
                                       "{}",
                                       "{{a}}",
                                       "a{",
                                       "{x}",
                                       "x",
                                       "{x",
                                       "x}",
                                       "\xff{\x01}",
                                       "}}}}",
                                       "a}:fence:x",
                                       "tagged",
                                       "{tagged}",
                                       ":lockkeepe",
                                       std::string(512, '}'),
                                       std::string(512, 'k')};

TEST(CompanionKey, SlotsAreThoseOfRedisCluster) {
  // From the cluster specification (CRC16 of "123456789" is 0x31C3) and CLUSTER KEYSLOT of a Redis 7.0.15.
  EXPECT_EQ(hashSlot("123456789"), 0x31C3 % 16384);
  EXPECT_EQ(hashSlot(""), 0);
  EXPECT_EQ(hashSlot("foo"), 12182);
  EXPECT_EQ(hashSlot("{user1000}.following"), hashSlot("{user1000}.followers"));
  EXPECT_EQ(hashSlot("{user1000}.following"), hashSlot("user1000"));
  EXPECT_NE(hashSlot("foo{}{bar}"), hashSlot("bar"));
  EXPECT_EQ(hashSlot("foo{{bar}}zap"), hashSlot("{bar"));
  EXPECT_EQ(hashSlot("foo{bar}{zap}"), hashSlot("bar"));
}

TEST(CompanionKey, LiesInTheSlotOfItsKey) {
  for (const std::string& key : keys) EXPECT_EQ(hashSlot(companionKey(key, "fence")), hashSlot(key)) << key;
}

TEST(CompanionKey, FindsATagForEverySlot) {
  std::bitset<16384> slots;
  for (int number = 0; !slots.all(); ++number) {
    const std::string key = "}" + std::to_string(number);
    const std::uint16_t slot = hashSlot(key);
    if (slots.test(slot)) continue;
    slots.set(slot);
    if (slots.count() % 64 != 0) continue;
    ASSERT_EQ(hashSlot(companionKey(key, "fence")), hashSlot(key)) << key;
  }
}

TEST(CompanionKey, IsOfOneKeyOnlyAndNeverALock) {
  std::set<std::string> companions;
  for (const std::string& key : keys) {
    for (const char* const name : {"fence", "seen"}) {
      const std::string companion = companionKey(key, name).string();
      EXPECT_TRUE(companions.insert(companion).second) << companion;
      EXPECT_THROW(checkKey(companion), std::invalid_argument) << companion;
    }
  }
}

}  // namespace
}  // namespace lockkeeper::redis

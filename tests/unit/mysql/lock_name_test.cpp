#include "session/lock_name.h"

#include <algorithm>
#include <set>

#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"

#include <gtest/gtest.h>

namespace lockkeeper::mysql {
namespace {

// What both servers keep apart as it is: MySQL folds case and accents, and takes 64 characters at most.
bool fitsBothServers(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](unsigned char c) {
    return c > ' ' && c < 0x7f && (c < 'A' || c > 'Z') && c != '\'' && c != '\\' && c != '"' && c != ';';
  });
}

TEST(LockName, OfAPlainKeyIsTheKeySoThatOthersCanShareIt) {
  EXPECT_EQ(lockName("shop:order/42"), "shop:order/42");
  EXPECT_EQ(lockName(std::string(64, 'k')), std::string(64, 'k'));
}

TEST(LockName, FitsBothServersWhateverTheKey) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string key = "k" + std::string(1, static_cast<char>(byte));
    EXPECT_TRUE(fitsBothServers(lockName(key))) << quoted(key);
  }
  for (const std::size_t length : {65U, 192U, 193U, 512U})
    EXPECT_TRUE(fitsBothServers(lockName(std::string(length, 'k')))) << length;
}

TEST(LockName, KeepsKeysApart) {
  std::set<std::string> names;
  std::size_t keys = 0;
  const auto add = [&](const std::string& key) {
    names.insert(lockName(key));
    ++keys;
  };
  for (const char* key : {"a", "A", "a ", " a", "\xC3\x89", "\xC3\xA9", "e", "E", "a_", "_a"}) add(key);
  for (const char last : {'a', 'b'}) {
    for (const std::size_t length : {65U, 193U, 512U}) add(std::string(length - 1, 'k') + last);
  }
  EXPECT_EQ(names.size(), keys);
}

TEST(LockName, OfAKeyThatLooksHashedIsHashedAgain) {
  const std::string hashed = lockName("A");
  EXPECT_NE(hashed.find(reservedMark), std::string::npos);
  EXPECT_NE(lockName(hashed), hashed);
}

TEST(LockName, StaysReadableWhereItIsHashed) {
  EXPECT_EQ(lockName("Order 42").find("_rder_42:lockkeeper:"), 0U);
}

}  // namespace
}  // namespace lockkeeper::mysql

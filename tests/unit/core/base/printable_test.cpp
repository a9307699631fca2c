#include <gtest/gtest.h>

#include "lockkeeper/error.h"

namespace lockkeeper {
namespace {

TEST(Printable, IsOneLineOfAsciiThatTellsBytesApart) {
  EXPECT_EQ(printable("plain {text}", 64), "plain {text}");
  EXPECT_EQ(printable(std::string("a\n\0\x7f\xc3\xa4", 6), 64), "a\\x0a\\x00\\x7f\\xc3\\xa4");
  EXPECT_NE(printable("\n", 64), printable("\\x0a", 64));
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("abc", 3), "abc");
}

TEST(Printable, QuotesAtMost64Bytes) {
  EXPECT_EQ(lockkeeper::quoted("plain"), "'plain'");
  EXPECT_EQ(lockkeeper::quoted("a\n\\"), "'a\\x0a\\\\'");
  EXPECT_EQ(lockkeeper::quoted(std::string(64, 'x')), "'" + std::string(64, 'x') + "'");
  EXPECT_EQ(lockkeeper::quoted(std::string(65, 'x')), "'" + std::string(64, 'x') + "...'");
}

}  // namespace
}  // namespace lockkeeper

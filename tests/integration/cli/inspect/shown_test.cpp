// What others have written into a store, or a server has answered, on the terminal.

#include "shown.h"

#include <gtest/gtest.h>

#include <string>

namespace lockkeeper::cli {
namespace {

TEST(Shown, WhatCanBeReadIsAsItIs) {
  for (const std::string text : {"order:42", "Übung 日本 \xf0\x9f\x94\x92", "a\\b", ""}) {
    EXPECT_EQ(oneLine(text), text);
    EXPECT_EQ(shown(text), text);
  }
}

TEST(Shown, WhatControlsTheTerminalOrIsNotSeenIsShownAsNumbers) {
  EXPECT_EQ(oneLine("a\nb\x1b[2J"), "a\\x0ab\\x1b[2J") << "C0";
  EXPECT_EQ(oneLine("a\x9b"
                    "2J"),
            "a\\x9b2J")
      << "C1, as a byte that is no UTF-8";
  EXPECT_EQ(oneLine("a\xc2\x9b"
                    "2J"),
            "a\\xc2\\x9b2J")
      << "C1";
  EXPECT_EQ(oneLine("a\xe2\x80\xae"
                    "b"),
            "a\\xe2\\x80\\xaeb")
      << "right to left";
  EXPECT_EQ(oneLine("a\xe2\x81\xa6\xe2\x80\xa8\xe2\x80\xa9"),
            "a\\xe2\\x81\\xa6\\xe2\\x80\\xa8\\xe2\\x80\\xa9")
      << "isolate, line, paragraph";
  EXPECT_EQ(oneLine("\xf3\xa0\x80\xa1"), "\\xf3\\xa0\\x80\\xa1") << "a tag";
  EXPECT_EQ(oneLine("\xc3"), "\\xc3") << "half a character";
  EXPECT_EQ(oneLine("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(shown("a\xc2\x9b"), "'a\\xc2\\x9b'");
}

TEST(Shown, TextsTakeAsManyColumnsAsATerminalGivesThem) {
  EXPECT_EQ(columnsOf("order:1"), 7U);
  EXPECT_EQ(columnsOf("Übung"), 5U);
  EXPECT_EQ(columnsOf("日本"), 4U) << "wide";
  EXPECT_EQ(columnsOf("\xf0\x9f\x94\x92"), 2U) << "a picture";
  EXPECT_EQ(columnsOf("e\xcc\x81"), 1U) << "an accent";
  EXPECT_EQ(columnsOf(""), 0U);
  EXPECT_EQ(fitting("日本k", 5), "日本k");
  EXPECT_EQ(fitting("日本k", 4), "日本");
  EXPECT_EQ(fitting("日本k", 3), "日") << "no half of a character";
  EXPECT_EQ(fitting("e\xcc\x81k", 1), "e\xcc\x81");
}

TEST(Shown, NoByteThatControlsATerminalIsLeft) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; second += 3) {
      const std::string text{static_cast<char>(first), static_cast<char>(second), 'x'};
      const std::string line = oneLine(text);
      for (std::size_t at = 0; at < line.size(); ++at) {
        const auto byte = static_cast<unsigned char>(line[at]);
        ASSERT_TRUE(byte >= 0x20 && byte != 0x7f) << first << " " << second;
        const bool follows = at > 0 && static_cast<unsigned char>(line[at - 1]) >= 0xc3;
        ASSERT_TRUE(byte < 0x80 || byte >= 0xa0 || follows) << first << " " << second;
      }
    }
  }
}

}  // namespace
}  // namespace lockkeeper::cli

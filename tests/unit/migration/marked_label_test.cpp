#include <gtest/gtest.h>

#include <string>

#include "stores/marked_store.h"

namespace lockkeeper::migration {
namespace {

TEST(MarkedLabel, IsTheLabelWithAMark) {
  EXPECT_EQ(markedLabel("web-1:4711"), "web-1:4711~");
  EXPECT_EQ(unmarkedLabel("web-1:4711~"), "web-1:4711");
  EXPECT_EQ(markedLabel(std::string(63, 'w')), std::string(63, 'w') + "~");
  EXPECT_EQ(markedLabel(""), "");
}

TEST(MarkedLabel, OfALabelThatLeavesNoRoomIsShortenedAndItsOwn) {
  const std::string common(63, 'w');
  const std::string marked = markedLabel(common + "1");
  EXPECT_EQ(marked.size(), 64U);
  EXPECT_TRUE(marked.starts_with(std::string(47, 'w')) && marked.ends_with("~")) << marked;
  EXPECT_EQ(marked, markedLabel(common + "1"));
  EXPECT_NE(marked, markedLabel(common + "2"));
}

}  // namespace
}  // namespace lockkeeper::migration

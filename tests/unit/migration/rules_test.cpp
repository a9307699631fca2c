#include "lockkeeper/migration/rules.h"

#include <array>

#include "lockkeeper/error.h"

#include <gtest/gtest.h>

namespace lockkeeper::migration {
namespace {

std::string refusal(const std::string& text) {
  try {
    (void)Rules::parse(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Rules, TheFirstRuleThatMatchesDecides) {
  const Rules rules = Rules::parse("order:vip:* = legacy, order:* = modern, * = both");
  EXPECT_EQ(rules.phaseOf("order:vip:1"), Phase::legacy);
  EXPECT_EQ(rules.phaseOf("order:1"), Phase::modern);
  EXPECT_EQ(rules.phaseOf("stock"), Phase::both);
  EXPECT_EQ(rules.phaseOf("reorder:1"), Phase::both) << "a pattern matches whole keys";
}

TEST(Rules, WhatNoRuleMatchesStaysWhereItIs) {
  EXPECT_EQ(Rules::parse("order:* = modern").phaseOf("stock"), Phase::legacy);
}

TEST(Rules, PatternsMatchAnyBytes) {
  const Rules rules = Rules::parse("a*b?c* = modern");
  EXPECT_EQ(rules.phaseOf("abxc"), Phase::modern);
  EXPECT_EQ(rules.phaseOf(std::string("a\0\xff"
                                      "bb\nc tail",
                                      11)),
            Phase::modern);
  EXPECT_EQ(rules.phaseOf("abc"), Phase::legacy);
  EXPECT_EQ(Rules::parse("a[1] = modern").phaseOf("a1"), Phase::legacy) << "only * and ? are special";
}

TEST(Rules, APhaseAloneIsForAllKeys) {
  EXPECT_EQ(Rules::parse(" modern ").text(), "* = modern");
  EXPECT_EQ(Rules(Phase::both).text(), "* = both");
}

TEST(Rules, ReadBackWhatTheyWrite) {
  const std::string text = "order:* 25% = both, stock = modern, 10% = both, * = legacy";
  EXPECT_EQ(Rules::parse(text).text(), text);
  EXPECT_EQ(Rules::parse("  order:*   25%=both,stock=modern,\n10% = both , *=legacy"), Rules::parse(text));
}

TEST(Rules, APercentageTakesTheSameKeysInEveryProcessAndMoreAsItGrows) {
  // Known answers: a change of the hash would split a fleet.
  EXPECT_EQ(percentileOf("order:1"), 43U);
  EXPECT_EQ(percentileOf("stock"), 66U);
  EXPECT_EQ(percentileOf(std::string("\0\xff", 2)), 16U);
  int in25 = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string key = "order:" + std::to_string(i);
    const bool quarter = Rules::parse("25% = both").phaseOf(key) == Phase::both;
    const bool half = Rules::parse("50% = both").phaseOf(key) == Phase::both;
    EXPECT_TRUE(half || !quarter) << key;
    in25 += quarter ? 1 : 0;
  }
  EXPECT_GT(in25, 2300);
  EXPECT_LT(in25, 2700);
}

TEST(Rules, RefuseWhatTheyCannotMean) {
  EXPECT_NE(refusal("101% = both").find("'101%'"), std::string::npos) << refusal("101% = both");
  EXPECT_NE(refusal("-1% = both").find("0% to 100%"), std::string::npos) << refusal("-1% = both");
  EXPECT_NE(refusal("2.5% = both").find("whole numbers"), std::string::npos);
  EXPECT_NE(refusal("order:* = new").find("legacy, both and modern"), std::string::npos);
  EXPECT_NE(refusal("order:*").find("KEYS = PHASE"), std::string::npos);
  EXPECT_NE(refusal("").find("KEYS = PHASE"), std::string::npos);
  EXPECT_NE(refusal("a = both,").find("KEYS = PHASE"), std::string::npos);
  EXPECT_NE(refusal("a b = both").find("percentage"), std::string::npos);
  EXPECT_NE(refusal(std::string(9000, 'a') + " = both").find("8192"), std::string::npos);
}

TEST(Rules, NeverGrowLongerThanTheyCanBeRead) {
  Rules rules(Phase::both);
  const auto advanceALot = [&] {
    for (int i = 0; i < 1000; ++i)
      rules = rules.changedBy(Rules::parse("order:" + std::to_string(i) + " = modern"));
  };
  EXPECT_THROW(advanceALot(), ConfigError);
  EXPECT_TRUE(Rules::parse(rules.text()) == rules) << "what was written before is not lost";

  std::string tight = "a=both";
  while (tight.size() < 8000) tight += ",a=both";
  EXPECT_THROW(Rules::parse(tight), ConfigError) << "it is written with spaces";
}

TEST(Rules, AChangeTakesThePlaceOfTheRuleForTheSameKeys) {
  const Rules start = Rules::parse("* = legacy");
  const Rules share = start.changedBy(Rules::parse("25% = both"));
  EXPECT_EQ(share.text(), "25% = both, * = legacy");
  const Rules more = share.changedBy(Rules::parse("50% = both"));
  EXPECT_EQ(more.text(), "50% = both, * = legacy");
  const Rules orders = more.changedBy(Rules::parse("order:* = both"));
  EXPECT_EQ(orders.text(), "order:* = both, 50% = both, * = legacy");
  EXPECT_EQ(orders.changedBy(Rules::parse("order:* = modern")).text(),
            "order:* = modern, 50% = both, * = legacy");
  EXPECT_EQ(orders.changedBy(Rules::parse("both")).text(), "* = both");
}

TEST(Rules, KnowWhichOfThemCanMatchNothing) {
  EXPECT_EQ(Rules::parse("* = both, order:* = modern").idle(), std::vector<std::string>{"order:* = modern"});
  EXPECT_EQ(Rules::parse("0% = both, * = legacy").idle(), std::vector<std::string>{"0% = both"});
  EXPECT_EQ(Rules::parse("order:* = both, order:vip* = modern").idle(),
            std::vector<std::string>{"order:vip* = modern"});
  EXPECT_TRUE(Rules::parse("order:* 25% = both, order:* 50% = modern, * = legacy").idle().empty());
}

TEST(Rules, FindAKeyThatWouldJump) {
  const auto jump = [](const char* from, const char* to) {
    return Rules::jump(Rules::parse(from), Rules::parse(to));
  };
  EXPECT_TRUE(jump("legacy", "modern"));
  EXPECT_TRUE(jump("modern", "legacy"));
  EXPECT_FALSE(jump("legacy", "both"));
  EXPECT_FALSE(jump("both", "modern"));
  EXPECT_EQ(jump("order:* = both, * = legacy", "* = modern").value_or("-").find("order:"), std::string::npos);
  EXPECT_FALSE(jump("order:* = both, * = legacy", "order:* = modern, * = legacy"));
  EXPECT_TRUE(jump("1% = legacy, * = both", "modern")) << "a share of one in a hundred is found, too";
}

}  // namespace
}  // namespace lockkeeper::migration

#include "legacy/legacy_value.h"

#include <gtest/gtest.h>

#include "legacy/legacy_call.h"
#include "lockkeeper/testing/fake_random.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;
using Kind = LegacyValue::Kind;

TEST(LegacyValue, TenDigitsAreALegacyClientsSeconds) {
  for (const std::string digits : {"1000000000", "1700000000", "9999999999"}) {
    const LegacyValue value = parseLegacyValue("string", digits);
    EXPECT_EQ(value.kind, Kind::digits) << digits;
    EXPECT_EQ(value.ends.count(), std::stoll(digits));
  }
}

TEST(LegacyValue, WithATokenItNamesItsOwner) {
  testing::FakeRandom random;
  const Claim claim{"key", Token::generate(random), "host:1"};
  const LegacyValue value = parseLegacyValue("string", "1700000000" + legacySuffix(claim));
  EXPECT_EQ(value.kind, Kind::withToken);
  EXPECT_EQ(value.ends, 1700000000s);
  EXPECT_EQ(value.owner, "host:1");
  const LegacyValue other = parseLegacyValue("string", "1700000000:other-token");
  EXPECT_EQ(other.kind, Kind::withToken);
  EXPECT_EQ(other.owner, "");
}

TEST(LegacyValue, AMissingKeyIsFree) { EXPECT_EQ(parseLegacyValue("none", "").kind, Kind::free); }

TEST(LegacyValue, AllElseIsForeignAndSaysWhatItLooksLike) {
  const std::vector<std::pair<std::string, std::string>> all{
      {"", "an empty string"},
      {"0", "no time in unix seconds"},
      {"999999999", "no time in unix seconds"},
      {"0170000000", "no time in unix seconds"},
      {"17000000000", "no time in unix seconds"},
      {"1700000000000", "milliseconds"},
      {"1700000000000000", "no time in unix seconds"},
      {"9007199254740992", "no time in unix seconds"},
      {"9007199254740993", "beyond 2^53"},
      {"10000000000000000", "beyond 2^53"},
      {"i:1700000000000;", "serialized PHP number that is no time"},
      {"d:1.7E+9;", "no number"},
      {"i:;", "no number"},
      {"s:10:\"1700000000\";", "no number"},
      {"1700000000.", "no number"},
      {"1700000000.5x", "no number"},
      {"1700000000,5", "no number"},
      {"-170000000", "no number"},
      {" 1700000000", "no number"},
      {"1700000000\n", "no number"},
      {"1700000000:", "no number"},
      {"1700000000:@host", "no number"},
      {"1700000000:to ken", "no number"},
      {"1700000000:" + std::string(65, 'a'), "no number"},
      {"1700000000@" + std::string(32, 'a'), "no number"},
      {std::string(32, 'a') + "@host", "no number"},
  };
  for (const auto& [text, what] : all) {
    const LegacyValue value = parseLegacyValue("string", text);
    EXPECT_EQ(value.kind, Kind::foreign) << text;
    EXPECT_NE(value.what.find(what), std::string::npos) << text << " is called " << value.what;
  }
  const LegacyValue hash = parseLegacyValue("hash", "");
  EXPECT_EQ(hash.kind, Kind::foreign);
  EXPECT_EQ(hash.what, "a key of the type hash");
}

TEST(LegacyValue, OfAClientThatWritesAFractionOrSerializesIsALockAndIsNamed) {
  const std::vector<std::tuple<std::string, std::chrono::seconds, std::string>> all = {
      {"1700000000.5", 1700000001s, "a fraction"},
      {"1700000000." + std::string(245, '9'), 1700000001s, "a fraction"},
      {"i:1700000000;", 1700000000s, "serialized PHP number"},
      {"d:1700000000;", 1700000000s, "serialized PHP number"},
      {"d:1700000000.25;", 1700000001s, "serialized PHP number"},
  };
  for (const auto& [text, ends, what] : all) {
    const LegacyValue value = parseLegacyValue("string", text);
    EXPECT_EQ(value.kind, Kind::digits) << text;
    EXPECT_EQ(value.ends, ends) << text;
    EXPECT_NE(value.what.find(what), std::string::npos) << text << " is called " << value.what;
  }
  EXPECT_EQ(parseLegacyValue("string", "1700000000").what, "");
}

LegacyReply seen(const std::string& text, std::chrono::milliseconds now,
                 std::optional<std::chrono::milliseconds> ttl = std::nullopt) {
  return {.value = parseLegacyValue("string", text), .text = text, .ttl = ttl, .now = now};
}

TEST(LegacyReply, ALockExpiresWithTheSecondAfterTheOneItNamesAndTheAllowance) {
  const std::string value = "1700000000";
  EXPECT_FALSE(seen(value, 1700000000999ms).expired(0ms)) << "legacy clients compare whole seconds";
  EXPECT_TRUE(seen(value, 1700000001000ms).expired(0ms));
  EXPECT_FALSE(seen(value, 1700000001000ms).expired(1ms));
  EXPECT_TRUE(seen(value, 1700000001001ms).expired(1ms));
  EXPECT_EQ(seen(value, 1699999999000ms).remaining(500ms), 2500ms);
}

TEST(LegacyReply, ATtlEndsALockEarlier) {
  EXPECT_EQ(seen("1700000000", 1699999990000ms, 700ms).remaining(0ms), 700ms);
  EXPECT_FALSE(seen("1700000000", 1699999990000ms, 700ms).expired(0ms));
}

TEST(LegacyReply, AForeignValueNeverExpires) {
  EXPECT_FALSE(seen("junk", 1700000000000ms).expired(0ms));
  EXPECT_FALSE(seen("junk", 1700000000000ms).remaining(0ms));
  EXPECT_EQ(seen("junk", 1700000000000ms, 700ms).remaining(0ms), 700ms);
  EXPECT_FALSE(seen("1000000000000", 1700000000000ms).expired(0ms));
}

TEST(LegacyReply, IsReadExactly) {
  const auto number = [](std::int64_t value) { return Reply{ReplyKind::integer, value, {}, {}}; };
  const auto text = [](std::string value) { return Reply{ReplyKind::bulk, 0, std::move(value), {}}; };
  const auto list = [](std::vector<Reply> items) { return Reply{ReplyKind::array, 0, {}, std::move(items)}; };
  EXPECT_TRUE(parseLegacyReply(list({number(1)}))->done);
  const auto busy = parseLegacyReply(list({number(0), text("none"), text(""), number(-2), number(5)}));
  ASSERT_TRUE(busy);
  EXPECT_FALSE(busy->done);
  EXPECT_EQ(busy->value.kind, Kind::free);
  EXPECT_EQ(busy->now, 5ms);
  for (const Reply& wrong : {number(1), list({}), list({number(2)}), list({number(1), number(1)}),
                             list({number(0)}), list({number(0), text("none"), text(""), number(-2)}),
                             list({number(0), number(1), text(""), number(-2), number(5)}),
                             list({number(0), text("none"), text(""), text("-2"), number(5)})}) {
    EXPECT_FALSE(parseLegacyReply(wrong));
  }
}

}  // namespace
}  // namespace lockkeeper::redis

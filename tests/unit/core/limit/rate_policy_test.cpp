#include <gtest/gtest.h>

#include "lockkeeper/error.h"
#include "lockkeeper/rate_policy.h"
#include "refusal.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using Settings = std::map<std::string, std::string>;

std::string refusal(const Settings& settings) {
  return refusalOf<ConfigError>([&] { (void)RatePolicy::parse("sms", settings); });
}

std::string refusal(const RatePolicyOptions& options) {
  return refusalOf([&] { (void)RatePolicy("sms", options); });
}

TEST(RateSetting, IsANumberByATime) {
  const auto read = [](std::string_view text) { return Rate::parse("rate", text); };
  EXPECT_EQ(read("2/s").count, 2);
  EXPECT_EQ(read("2/s").period, 1s);
  EXPECT_EQ(read("100/min").period, 1min);
  EXPECT_EQ(read("100/m").period, 1min);
  EXPECT_EQ(read("1/day").period, 24h);
  EXPECT_EQ(read("1/d").period, 24h);
  EXPECT_EQ(read("10/h").period, 1h);
  EXPECT_EQ(read("5/30s").period, 30s);
  EXPECT_EQ(read("5/250ms").period, 250ms);
  for (const std::string_view wrong :
       {"", "2", "2/", "/s", "2/x", "-1/s", "2/s ", " 2/s", "2.5/s", "2/-1s", "2/1.5s",
        "99999999999999999999/s", "1/99999999999999999999s", "1/367d"}) {
    const std::string message = refusalOf<ConfigError>([&] { (void)read(wrong); });
    EXPECT_EQ(message,
              "rate: '" + std::string(wrong) +
                  "' is not a rate: a whole number by a time is, such as 2/s, 100/min, 1/day or 5/30s");
  }
}

TEST(RatePolicy, IsReadFromConfiguration) {
  const RatePolicy plain = RatePolicy::parse("sms", {{"rate", "2/s"}, {"burst", "10"}});
  EXPECT_EQ(plain.name(), "sms");
  EXPECT_EQ(plain.options().kind, RateKind::tokenBucket);
  EXPECT_EQ(plain.options().outage, Outage::closed);
  EXPECT_EQ(plain.limit(), 10);
  const RatePolicy full = RatePolicy::parse(
      "sms", {{"rate", "100/min"}, {"kind", "leaky-meter"}, {"outage", "local"}, {"processes", "4"}});
  EXPECT_EQ(full.limit(), 100) << "the rate's count, when no burst is given";
  EXPECT_EQ(full.options().kind, RateKind::tokenBucket) << "another name of it";
  EXPECT_EQ(full.options().outage, Outage::local);
  EXPECT_EQ(full.localLaw().limit, 25);
  for (const RateKind kind :
       {RateKind::tokenBucket, RateKind::leakyQueue, RateKind::slidingWindow, RateKind::fixedWindow}) {
    EXPECT_EQ(RatePolicy::parse("sms", {{"rate", "2/s"}, {"kind", toString(kind)}}).options().kind, kind);
  }
  EXPECT_EQ(RatePolicy::parse("sms", {{"rate", "2/s"}, {"outage", "open"}}).options().outage, Outage::open);
}

TEST(RatePolicy, NamesWhatIsWrongInAConfiguration) {
  EXPECT_EQ(refusal(Settings{}), "limit 'sms': rate is missing, such as rate = 2/s");
  EXPECT_NE(refusal({{"rate", "often"}}).find("limit 'sms': rate: 'often'"), std::string::npos);
  EXPECT_EQ(refusal({{"rate", "2/s"}, {"burst", "ten"}}),
            "limit 'sms': burst is 'ten': it must be a whole number");
  EXPECT_EQ(refusal({{"rate", "2/s"}, {"burst", "0"}}),
            "limit 'sms': burst is 0: 1 to 1000000000 are allowed");
  EXPECT_EQ(refusal({{"rate", "2/s"}, {"kind", "bucket"}}),
            "limit 'sms': kind is 'bucket': it must be one of token-bucket, leaky-meter, leaky-queue, "
            "sliding-window, fixed-window");
  EXPECT_EQ(refusal({{"rate", "2/s"}, {"outage", "ajar"}}),
            "limit 'sms': outage is 'ajar': it must be one of closed, open, local");
  EXPECT_NE(refusal({{"rate", "2/s"}, {"brust", "1"}}).find("the setting 'brust' is unknown: rate, burst"),
            std::string::npos);
  EXPECT_NE(refusalOf([] { (void)RatePolicy("a b", {}); }).find("'a b'"), std::string::npos);
  EXPECT_NE(refusalOf([] { (void)RatePolicy("", {}); }).find("''"), std::string::npos);
}

TEST(RatePolicy, RefusesWhatWouldNotBeExactAndSaysWhatWouldBe) {
  EXPECT_EQ(
      refusal({{"rate", "1/day"}, {"burst", "1000000"}}),
      "limit 'sms': burst is 1000000: at this rate at most 36525 are allowed, so that a full bucket takes "
      "at most 100 years to fill");
  EXPECT_EQ(refusal({{"rate", "1/day"}, {"burst", "36525"}}), "accepted");
  EXPECT_EQ(refusal({{"rate", "1000000000/s"}, {"burst", "1000000000"}}), "accepted");
  EXPECT_EQ(refusal({{"rate", "1000000001/s"}}),
            "limit 'sms': the rate's count is 1000000001: 1 to 1000000000 are allowed");
  EXPECT_EQ(refusal({{"rate", "0/s"}}), "limit 'sms': the rate's count is 0: 1 to 1000000000 are allowed");
  EXPECT_NE(refusal(RatePolicyOptions{.rate = {1, 999us}}).find("period in µs is 999"), std::string::npos);
  EXPECT_EQ(refusal({{"rate", "1001/s"}, {"kind", "sliding-window"}}),
            "limit 'sms': the rate's count for a sliding-window is 1001: 1 to 1000 are allowed");
  EXPECT_EQ(refusal({{"rate", "5/s"}, {"kind", "fixed-window"}, {"burst", "5"}}),
            "limit 'sms': burst is set, but a fixed-window has none");
}

TEST(RatePolicy, SaysWhatToDoAboutASettingThatIsNoLongerSupported) {
  for (const std::string setting : {"prefetch", "prefetchIdle"}) {
    EXPECT_EQ(refusal({{"rate", "2/s"}, {setting, "0"}}),
              "limit 'sms': the setting '" + setting +
                  "' is no longer supported: remove it, and each call is decided by the store; calls of one "
                  "process for the same key share requests by themselves");
  }
}

TEST(RatePolicy, RefusesSharesThatAreEmpty) {
  EXPECT_EQ(refusal({{"rate", "2/s"}, {"processes", "3"}}),
            "limit 'sms': processes is 3: 1 to 2 are allowed");
}

TEST(RateLaw, IsInLowestTerms) {
  const RateLaw law = RatePolicy("sms", {.rate = {1500, 1s}}).law();
  EXPECT_EQ(law.period, 2000);
  EXPECT_EQ(law.parts, 3);
  EXPECT_EQ(law.lengthOf(1), (RateTime{666, 2}));
  EXPECT_EQ(law.lengthOf(3), (RateTime{2000, 0}));
  EXPECT_EQ(law.unitsIn({2000, 0}), 3);
  EXPECT_EQ(law.unitsIn({1999, 2}), 2);
  EXPECT_EQ(law.plus({1, 2}, {1, 2}), (RateTime{3, 1}));
  EXPECT_EQ(law.minus({3, 1}, {1, 2}), (RateTime{1, 2}));
}

}  // namespace
}  // namespace lockkeeper::test

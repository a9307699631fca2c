#include "http/limit/rate_fields.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockkeeper::poco {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const RatePolicy burst("burst", {.rate = {2, seconds{1}}, .burst = 10});
const RatePolicy daily("daily", {.kind = RateKind::fixedWindow, .rate = {1000, hours{24}}});
const RatePolicy quick("quick", {.rate = {1000, seconds{1}}, .burst = 1});

RateTake allowed(const RatePolicy& policy, std::int64_t remaining, microseconds resetAfter) {
  RateTake take{.key = "k", .policy = &policy};
  take.decision.allowed = true;
  take.decision.remaining = remaining;
  take.decision.resetAfter = resetAfter;
  return take;
}

RateTake refused(const RatePolicy& policy, microseconds retryAfter, microseconds resetAfter) {
  RateTake take{.key = "k", .policy = &policy};
  take.decision.retryAfter = retryAfter;
  take.decision.resetAfter = resetAfter;
  return take;
}

TEST(RateFields, SayWhatIsAllowedInWhichTime) {
  EXPECT_EQ(policyItem(burst), R"("burst";q=10;w=5)");
  EXPECT_EQ(policyItem(daily), R"("daily";q=1000;w=86400)");
  EXPECT_EQ(policyItem(quick), R"("quick";q=1;w=1)") << "0 s is no window";
}

TEST(RateFields, SayWhatIsLeft) {
  EXPECT_EQ(limitField(std::vector{allowed(burst, 9, milliseconds{500}), allowed(daily, 40, hours{3})}, true),
            R"("burst";r=9;t=1, "daily";r=40;t=10800)");
}

TEST(RateFields, OnARefusalRetryAfterIsNotBeforeTheWindowsEnd) {
  const std::vector takes{refused(burst, milliseconds{1001}, seconds{5}), allowed(daily, 40, hours{3})};
  EXPECT_EQ(limitField(takes, false), R"("burst";r=0;t=2)");
  EXPECT_EQ(retryAfter(takes), 2);
  EXPECT_EQ(retryAfter(std::vector{refused(burst, seconds{1}, {}), refused(daily, hours{1}, {})}), 3600);
}

TEST(RateFields, RoundUpSoThatNobodyComesTooEarly) {
  EXPECT_EQ(wholeSeconds(microseconds{1}), 1);
  EXPECT_EQ(wholeSeconds(seconds{1}), 1);
  EXPECT_EQ(wholeSeconds(seconds{1} + microseconds{1}), 2);
  EXPECT_EQ(retryAfter(std::vector{refused(burst, microseconds{0}, {})}), 1);
}

TEST(RateFields, DoNotInventWhatTheStoreHasNotTold) {
  RateTake open = allowed(burst, 0, {});
  open.decision.outage = ErrorCode::storeUnavailable;
  EXPECT_EQ(limitField(std::vector{open}, true), "");
}

}  // namespace
}  // namespace lockkeeper::poco

#include "wire/dial/connect_backoff.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockkeeper/testing/fake_random.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

bool due(const ConnectBackoff& backoff, Instant at) {
  try {
    backoff.check(at);
    return true;
  } catch (const StoreUnavailable&) {
    return false;
  }
}

TEST(ConnectBackoff, TheFirstAttemptAndTheOneAfterASuccessAreDueAtOnce) {
  testing::FakeRandom random;
  ConnectBackoff backoff;
  const Instant now{1h};
  EXPECT_TRUE(due(backoff, now));
  backoff.failed(ErrorCode::storeUnavailable, "refused", now, random);
  EXPECT_FALSE(due(backoff, now));
  backoff.succeeded();
  EXPECT_TRUE(due(backoff, now));
}

TEST(ConnectBackoff, DoublesFromTwentyToFiveHundredMilliseconds) {
  testing::FakeRandom random;
  testing::FakeRandom same;
  ConnectBackoff backoff;
  Instant now{1h};
  for (const auto length : {20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms, 500ms}) {
    backoff.failed(ErrorCode::storeUnavailable, "refused", now, random);
    const std::chrono::nanoseconds half = length / 2;
    const auto jitter = same.upTo(static_cast<std::uint64_t>(half.count()));
    const Instant next = now + half + std::chrono::nanoseconds(jitter);
    EXPECT_FALSE(due(backoff, next - 1ns)) << length.count();
    EXPECT_TRUE(due(backoff, next)) << length.count();
    now = next;
  }
}

TEST(ConnectBackoff, SaysWhatHasFailed) {
  testing::FakeRandom random;
  ConnectBackoff backoff;
  backoff.failed(ErrorCode::config, "wrong password", Instant{1h}, random);
  try {
    backoff.check(Instant{1h});
    ADD_FAILURE() << "due";
  } catch (const ConfigError& fault) {
    EXPECT_STREQ(fault.what(), "wrong password");
  }
}

}  // namespace
}  // namespace lockkeeper::redis

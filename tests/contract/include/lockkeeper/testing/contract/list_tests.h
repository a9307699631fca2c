#pragma once

#include <map>
#include <string>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

/// What a listing shows. Fails the test when a key is visited twice.
inline std::map<std::string, Holder> listed(LockDriver& driver, const std::string& prefix, Instant deadline) {
  std::map<std::string, Holder> seen;
  capability<Browsable>(driver)->list(
      prefix,
      [&](std::string_view visited, const Holder& by) {
        EXPECT_TRUE(seen.emplace(visited, by).second) << visited << " was visited twice";
        return true;
      },
      deadline);
  return seen;
}

TEST_P(DriverContract, ListsTheLocksUnderAPrefixWithTheirHolders) {
  if (!GetParam().browsable) GTEST_SKIP() << notBrowsable;
  const auto granted = grant({key + "/a", "first:1"});
  ASSERT_TRUE(granted);
  ASSERT_TRUE(grant({key + "/b", "second:2"}));
  ASSERT_TRUE(grant({uniqueKey()}));
  const auto seen = listed(*driver, key + "/", deadline());
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen.at(key + "/a").owner, "first:1");
  EXPECT_EQ(seen.at(key + "/a").fence, granted->fence);
  EXPECT_EQ(seen.at(key + "/b").owner, "second:2");
}

TEST_P(DriverContract, ListsEveryLockForAnEmptyPrefix) {
  if (!GetParam().browsable) GTEST_SKIP() << notBrowsable;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(grant({key + "/" + std::to_string(i)}));
  const auto seen = listed(*driver, "", deadline());
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(seen.contains(key + "/" + std::to_string(i)));
}

TEST_P(DriverContract, ListsNothingThatIsNotHeldAnyMore) {
  if (!GetParam().browsable) GTEST_SKIP() << notBrowsable;
  const Claimant released{key + "/released"};
  ASSERT_TRUE(grant(released));
  ASSERT_EQ(release(released), ReleaseOutcome::released);
  ASSERT_TRUE(grant({key + "/ended"}, shortTtl()));
  ASSERT_TRUE(expires(key + "/ended", shortTtl()));
  EXPECT_TRUE(listed(*driver, key, deadline()).empty());
}

TEST_P(DriverContract, TakesAPrefixLiterally) {
  if (!GetParam().browsable) GTEST_SKIP() << notBrowsable;
  const std::string special = key + "*?[a-z]\\{x}%_";
  ASSERT_TRUE(grant({special + "1"}));
  ASSERT_TRUE(grant({key + "plain"}));
  EXPECT_EQ(listed(*driver, special, deadline()).size(), 1U);
  EXPECT_EQ(listed(*driver, key + "*", deadline()).size(), 1U);
  EXPECT_TRUE(listed(*driver, key + "?lain", deadline()).empty());
  EXPECT_TRUE(listed(*driver, key + "[p]", deadline()).empty());
}

TEST_P(DriverContract, ListsKeysOfAnyBytes) {
  if (!GetParam().browsable) GTEST_SKIP() << notBrowsable;
  const std::string odd = key + std::string("\0\r\n\xFF", 4);
  ASSERT_TRUE(grant({odd}));
  EXPECT_TRUE(listed(*driver, key, deadline()).contains(odd));
}

TEST_P(DriverContract, EndsTheListingWhenTheVisitorHasSeenEnough) {
  if (!GetParam().browsable) GTEST_SKIP() << notBrowsable;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(grant({key + "/" + std::to_string(i)}));
  int visits = 0;
  capability<Browsable>(*driver)->list(
      key, [&](std::string_view, const Holder&) { return ++visits < 3; }, deadline());
  EXPECT_EQ(visits, 3);
}

}  // namespace lockkeeper::testing

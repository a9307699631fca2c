#pragma once

#include <string>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/contract/driver_fixture.h"
#include "lockkeeper/testing/treacherous_keys.h"

namespace lockkeeper::testing {

TEST_P(DriverContract, EveryByteSequenceIsAKeyOfItsOwn) {
  std::vector<Claimant> holders;
  for (const std::string& text : treacherousKeys()) holders.push_back({text});
  for (const Claimant& who : holders) {
    ASSERT_TRUE(grant(who)) << quoted(who.key) << " is taken for a key that is locked already";
  }
  for (const Claimant& who : holders) EXPECT_TRUE(isBusy({who.key})) << quoted(who.key);
  for (const Claimant& who : holders) EXPECT_EQ(renew(who), RenewOutcome::renewed) << quoted(who.key);
  for (const Claimant& who : holders) {
    EXPECT_TRUE(holder(who.key)) << quoted(who.key);
    EXPECT_EQ(release(who), ReleaseOutcome::released) << quoted(who.key);
    EXPECT_FALSE(holder(who.key)) << quoted(who.key);
  }
}

}  // namespace lockkeeper::testing

#include "lockkeeper/internal/holders.h"

#include <gtest/gtest.h>

namespace lockkeeper::testing {
namespace {

Holder holderNamed(const char* owner, std::optional<Fence> fence, const char* grantId = "") {
  return {.owner = owner, .remaining = {}, .fence = fence, .grantId = grantId};
}

TEST(SameGrant, IsToldByItsFenceAndItsIdWhateverIsLeftOfItsOwner) {
  EXPECT_TRUE(sameGrant(holderNamed("web-1:7", 5), holderNamed("web", 5)));
  EXPECT_FALSE(sameGrant(holderNamed("web-1:7", 5), holderNamed("web-1:7", 6)));
  EXPECT_TRUE(sameGrant(holderNamed("web-1:7", {}, "a"), holderNamed("web", {}, "a")));
  EXPECT_FALSE(sameGrant(holderNamed("web-1:7", 5, "a"), holderNamed("web-1:7", 5, "b")));
}

TEST(SameGrant, IsToldByItsOwnerWhereTheStoreTellsNothingElse) {
  EXPECT_TRUE(sameGrant(holderNamed("web-1:7", {}), holderNamed("web-1:7", {})));
  EXPECT_FALSE(sameGrant(holderNamed("web-1:7", {}), holderNamed("web-2:7", {})));
}

}  // namespace
}  // namespace lockkeeper::testing

#include "lockkeeper/internal/holders.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {
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

TEST(SameGrant, IsToldByItsIdWhereOneIsShownWithoutItsFence) {
  EXPECT_TRUE(sameGrant(holderNamed("web-1:7", {}, "a"), holderNamed("web-1:7", 5, "a")));
  EXPECT_TRUE(sameGrant(holderNamed("web-1:7", 5, "a"), holderNamed("web-1:7", {}, "a")));
  EXPECT_FALSE(sameGrant(holderNamed("web-1:7", 5, "a"), holderNamed("web-1:7", 6, "a")));
  EXPECT_FALSE(sameGrant(holderNamed("web-1:7", {}), holderNamed("web-1:7", 5)));
}

TEST(SameGrant, IsTheSameWhenTheLimitOfItsShareHasChanged) {
  Holder before = holderNamed("web-1:7", 5, "a");
  before.share = Share{.weight = 1, .limit = 2};
  Holder after = before;
  after.share->limit = 3;
  EXPECT_TRUE(sameGrant(before, after));
}

TEST(SameGrant, IsToldByItsOwnerWhereTheStoreTellsNothingElse) {
  EXPECT_TRUE(sameGrant(holderNamed("web-1:7", {}), holderNamed("web-1:7", {})));
  EXPECT_FALSE(sameGrant(holderNamed("web-1:7", {}), holderNamed("web-2:7", {})));
}

}  // namespace
}  // namespace lockkeeper::test

#include "cut_greeting.h"
#include "getlock_operations.h"

namespace lockkeeper::test {
namespace {

/// Replies are cut again and again, each time a little later: no cut may pass for an answer.
class CutGetLockReplies : public ::testing::TestWithParam<BrandAndOperation> {
 protected:
  GetLockStore store{std::get<Brand>(GetParam())};
};

TEST_P(CutGetLockReplies, AreNeverTakenForAnswers) {
  const Operation& operation = std::get<Operation>(GetParam());
  const auto driver = store.openProxied();
  constexpr std::size_t longestReply = 2000;
  std::size_t cuts = 0;
  for (std::size_t bytes = 0; bytes < longestReply; ++bytes) {
    SCOPED_TRACE("cut after " + std::to_string(bytes) + " bytes");
    const Claimant who{};
    ASSERT_NO_THROW((void)driver->holder("connects again", soon()));
    operation.prepare(heldByTheDriver(operation) ? *driver : *store.direct, who);
    store.proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
    const std::string said = attempt(operation, *driver, who, soon());
    if (store.proxy.fired() == 0) {
      EXPECT_EQ(said, operation.expected(*store.direct, who));
      EXPECT_EQ(cuts, bytes) << "every cut must have hit";
      EXPECT_GT(cuts, 3U);
      return;
    }
    ++cuts;
    store.proxy.passThrough();
    const std::string name = operation.name;
    if (name == "AcquireFree" && said == std::string("error: ") + toString(ErrorCode::storeUnavailable)) {
      // The reply with the fence was cut, and the lock given back.
      ASSERT_TRUE(store.isFree(who.key)) << "the driver said that nothing was done";
    } else if (name.starts_with("Acquire") || name == "ReleaseHeld") {
      ASSERT_EQ(said, std::string("error: ") + toString(ErrorCode::outcomeUnknown));
    } else if (name == "RenewHeld") {
      ASSERT_EQ(said, "not owner") << "the lock ends with its session";
    } else {
      ASSERT_EQ(said, operation.expected(*store.direct, who)) << "a question is asked on another session";
    }
    if (name == "AcquireBusy" || !operation.changesTheStore) continue;
    ASSERT_TRUE(waitUntil([&] { return store.isFree(who.key); }))
        << "the server frees what a lost session held";
    ASSERT_TRUE(granted(driver->acquire(who.request(soon(), true)))) << "the same claim, sent again";
    ASSERT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  }
  FAIL() << "the reply never passed whole";
}

INSTANTIATE_TEST_SUITE_P(Servers, CutGetLockReplies, allBrandsAndOperations(), brandAndOperationName);

/// The log-in, the checks and the making of the table are cut.
using CutGetLockGreeting = GetLockTest;

TEST_P(CutGetLockGreeting, YieldsNoGrantAndClaimsNothingThatIsNotSo) { cutGreetings(store); }

INSTANTIATE_TEST_SUITE_P(Brands, CutGetLockGreeting, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

#include <tuple>

#include "frozen_server.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

FreezableStore freezable(const VersionStore& store) { return freezable(store, "connectTimeout=1s", 1s); }

class FrozenVersionServer : public ::testing::TestWithParam<std::tuple<Brand, Operation>> {
 protected:
  VersionStore store{std::get<Brand>(GetParam())};
};

TEST_P(FrozenVersionServer, EveryCallReturnsByItsDeadlineAndLeavesNothingBehind) {
  freezeDuring(std::get<Operation>(GetParam()), freezable(store));
}

INSTANTIATE_TEST_SUITE_P(Operations, FrozenVersionServer,
                         ::testing::Combine(::testing::ValuesIn(allBrands),
                                            ::testing::ValuesIn(operations())),
                         [](const auto& each) {
                           return std::string(nameOf(std::get<Brand>(each.param))) +
                                  std::get<Operation>(each.param).name;
                         });

using FrozenVersionServerUnderLoad = VersionTest;

TEST_P(FrozenVersionServerUnderLoad, AllThreadsReturnByTheirDeadlines) { freezeUnderLoad(freezable(store)); }

TEST_P(FrozenVersionServerUnderLoad, AClaimThatWasGivenUpDoesNotKeepTheKey) {
  freezeBeforeAClaim(freezable(store));
}

TEST_P(FrozenVersionServerUnderLoad, AHolderIsToldBeforeItsLeaseEnds) {
  freezeUnderAHolder(freezable(store));
}

TEST_P(FrozenVersionServerUnderLoad, DestroyingADriverDoesNotWaitForTheServer) {
  auto driver = store.open();
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  store.server.pause();
  const Instant start = now();
  driver.reset();
  EXPECT_LT(now() - start, schedulingSlack);
  store.server.resume();
}

INSTANTIATE_TEST_SUITE_P(Brands, FrozenVersionServerUnderLoad, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

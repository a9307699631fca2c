#pragma once

#include <gtest/gtest.h>

#include "claimant.h"
#include "fault_proxy.h"
#include "lockkeeper/error.h"

namespace lockkeeper::test {

/// The body of a test: what a server says before a driver's first grant (log-in, checks, tables) is cut
/// further and further on. No cut may yield a grant, or the claim that nothing was done when something was.
template <class Store>
void cutGreetings(Store& store) {
  constexpr std::size_t longestGreeting = 20000;
  std::size_t cuts = 0;
  for (std::size_t bytes = 0; bytes < longestGreeting; bytes += 3) {
    const auto driver = store.openProxied();
    const Claimant who{};
    store.proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
    try {
      const AcquireResult result = driver->acquire(who.request());
      ASSERT_EQ(store.proxy.fired(), 0U) << "a grant after a cut behind " << bytes << " bytes";
      EXPECT_TRUE(granted(result));
      EXPECT_GT(cuts, 50U);
      return;
    } catch (const StoreUnavailable&) {
      ASSERT_TRUE(store.isFree(who.key)) << "the driver said that nothing was done";
    } catch (const OutcomeUnknown&) {
    }
    ASSERT_EQ(store.proxy.fired(), 1U);
    ++cuts;
  }
  FAIL() << "the greeting never passed whole";
}

}  // namespace lockkeeper::test

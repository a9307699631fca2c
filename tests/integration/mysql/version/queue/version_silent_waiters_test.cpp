// Waiters whose processes stand still, or whose hosts have vanished.

#include <future>
#include <stop_token>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"
#include "version/version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using VersionSilentWaiters = VersionTest;

// The server makes each of them the first for a second, one after the other.
TEST_P(VersionSilentWaiters, KeepAReleasedKeyFromALiveOneForTwoSecondsHoweverManyThereAre) {
  constexpr std::size_t count = 12;
  const Claimant holds;
  ASSERT_TRUE(granted(store.direct->acquire(holds.request())));
  const auto wait = [&](const std::shared_ptr<LockDriver>& driver) {
    return std::async(std::launch::async, [&key = holds.key, driver] {
      Claimant who;
      who.key = key;
      return capability<Waitable>(*driver)->acquireWaiting(who.request(), 1min, {});
    });
  };
  const auto queued = [&] { return store.server.waitingFor("queue%").size(); };
  const auto proxied = store.openProxied("connections=16");
  std::vector<std::future<AcquireResult>> silent;
  for (std::size_t i = 0; i < count; ++i) silent.push_back(wait(proxied));
  ASSERT_TRUE(waitUntil([&] { return queued() == count - 1; })) << "one is the first";
  store.proxy.set({.kind = ProxyFault::Kind::blackhole});
  auto live = wait(store.direct);
  // The first one's session has ended meanwhile, or will soon.
  ASSERT_TRUE(waitUntil([&] { return queued() >= count - 1; }));
  ASSERT_EQ(store.direct->release(holds.claim(), soon()), ReleaseOutcome::released);
  const Instant released = now();
  EXPECT_TRUE(granted(live.get()));
  EXPECT_LT(now() - released, 2s + schedulingSlack) << "a second for each would be " << count << " s";
  store.proxy.endConnections(Ending::rst);
  for (auto& each : silent) EXPECT_THROW((void)each.get(), Error);
}

INSTANTIATE_TEST_SUITE_P(Brands, VersionSilentWaiters, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test

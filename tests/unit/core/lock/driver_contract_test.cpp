#include <thread>

#include "contract_drivers.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/store/quorum.h"
#include "lockkeeper/store/shared_records.h"
#include "manager_fixture.h"

// What core makes of the things that a driver tells: lengths, losses, capabilities, outcomes that come one
// by one.

namespace lockkeeper::test {
namespace {

class DriverNewsTest : public ManagerFixture {
 protected:
  /// What remains of a lease of which the store gave so much just now.
  static std::chrono::nanoseconds usable(std::chrono::nanoseconds given) {
    return given - given / 100 - 2ms - given / 10;
  }

  const Instant start = clock->now();
};

TEST_F(DriverNewsTest, ALeaseShorterThanAskedEndsAndIsRenewedSooner) {
  const auto half = std::make_shared<OtherLength>(store, [](auto asked) { return asked / 2; });
  LockManager brief(half, options(seed + 2));
  const auto held = brief.lock("order", {.ttl = 30s});
  EXPECT_EQ(held.remaining(), usable(15s));
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 5s)) << "renewed at a third of what was given";
  clock->advance(5s);
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 10s));
  EXPECT_EQ(held.remaining(), usable(15s));
}

TEST_F(DriverNewsTest, AStoreThatCountsWholeSecondsMayGiveMore) {
  const auto seconds = std::make_shared<OtherLength>(
      store, [](auto asked) { return std::chrono::ceil<std::chrono::seconds>(asked); });
  LockManager lasting(seconds, options(seed + 2));
  const auto held = lasting.lock("order", {.ttl = 1200ms, .renew = Renew::manual});
  EXPECT_EQ(held.remaining(), usable(2s));
}

TEST_F(DriverNewsTest, ALeaseTooShortToUseIsGivenBack) {
  const auto none = std::make_shared<OtherLength>(store, [](auto) { return 1ms; });
  LockManager brief(none, options(seed + 2));
  EXPECT_THROW((void)brief.tryLock("order", {.ttl = 30s}), OutcomeUnknown);
}

TEST_F(DriverNewsTest, ALossThatTheStoreTellsIsToldAtOnce) {
  LockManager direct(std::make_shared<Decorator>(store), options(seed + 2));
  const auto held = direct.lock("order", {.ttl = 30s});
  const auto neighbour = direct.lock("another", {.ttl = 30s});
  ASSERT_TRUE(store->breakLock("order", {}));
  EXPECT_FALSE(held.valid());
  listener->await("lost: not the owner any more order");
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_TRUE(neighbour.valid());
  EXPECT_TRUE(direct.tryLock("order")) << "the next caller of the process may go";
  EXPECT_EQ(clock->now(), start);
}

TEST_F(DriverNewsTest, ALossToldToAManagerThatIsGoneIsNobodys) {
  { LockManager brief(std::make_shared<Decorator>(store), options(seed + 2)); }
  LockManager direct(std::make_shared<Decorator>(store), options(seed + 3));
  const auto held = direct.lock("order", {.ttl = 30s});
  ASSERT_TRUE(store->breakLock("order", {}));
  EXPECT_FALSE(held.valid());
}

TEST_F(DriverNewsTest, ADecoratorPassesOnCapabilitiesThatItDoesNotKnow) {
  const std::shared_ptr<LockDriver> decorated =
      std::make_shared<Decorator>(std::make_shared<Decorator>(store));
  EXPECT_NE(capability<Waitable>(*decorated), nullptr);
  EXPECT_NE(capability<Browsable>(*decorated), nullptr);
  EXPECT_NE(capability<Breakable>(*decorated), nullptr);
  EXPECT_NE(capability<LossReporting>(*decorated), nullptr);
  EXPECT_NE(capability<SharedRecords>(*decorated), nullptr);
  EXPECT_EQ(capability<Quorate>(*decorated), nullptr);

  RateLimiter limiter(capability<RateDriver>(decorated));
  EXPECT_TRUE(limiter.take("k", RatePolicy::parse("p", {{"rate", "1/s"}})).allowed);

  LockManager waits(decorated, options(seed + 2));
  auto held = waits.lock("order");
  LockManager queued(decorated, options(seed + 3));
  auto next = std::async(std::launch::async, [&] { return queued.lock("order", {.waitFor = 1h}); });
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 27s - 302ms));
  held.release();
  EXPECT_TRUE(next.get().valid()) << "handed over by the store's queue, without a poll";
  EXPECT_EQ(clock->now(), start);
}

/// A store of two sessions: keys that begin with "slow" are answered when the test says so.
class TwoSessions final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;

  void renew(std::span<Renewal> renewals, Instant deadline) override {
    for (const bool slow : {false, true}) {
      for (Renewal& each : renewals) {
        if (each.claim.key.starts_with("slow") != slow) continue;
        if (slow) answer.get_future().wait();
        Renewal asked = each;
        asked.told = {};
        inner_->renew({&asked, 1}, deadline);
        each.outcome = asked.outcome;
        each.leasedFrom = asked.leasedFrom;
        each.leasedFor = asked.leasedFor;
        if (each.told) each.told(each);
      }
    }
  }

  std::promise<void> answer;
};

TEST_F(DriverNewsTest, ASessionThatHangsHoldsUpNoRenewalOfAnother) {
  const auto sessions = std::make_shared<TwoSessions>(store);
  LockManager direct(sessions, options(seed + 2));
  const auto slow = direct.lock("slow", {.ttl = 30s});
  const auto quick = direct.lock("quick", {.ttl = 30s});
  ASSERT_TRUE(clock->awaitWakeUpAt(start + 10s));
  clock->advance(10s);
  listener->await("renewed quick");
  EXPECT_EQ(quick.remaining(), usable(30s));
  EXPECT_EQ(slow.remaining(), usable(30s) - 10s);
  sessions->answer.set_value();
  listener->await("renewed slow");
}

}  // namespace
}  // namespace lockkeeper::test

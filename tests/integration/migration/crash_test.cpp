#include "lockkeeper/lock_manager.h"
#include "migration_fixture.h"

namespace lockkeeper::test {
namespace {

using migration::Phase;

/// Where a process is killed, and what it leaves behind.
struct Death {
  const char* name;
  Phase phase;
  const char* point;
  bool inOld;
  bool inNew;
};

void PrintTo(const Death& death, std::ostream* out) { *out << death.name; }

class KilledProcess : public MigrationTest, public ::testing::WithParamInterface<Death> {
 protected:
  bool heldIn(const std::string& uri) const {
    return openStore(uri)->holder("order:1", systemClock()->now() + std::chrono::seconds{10}).has_value();
  }
};

TEST_P(KilledProcess, LeavesNothingThatOutlivesItsLease) {
  const Death& death = GetParam();
  decree(death.phase);
  Process process(worker(oldUri(), death.point));
  ASSERT_EQ(process.waitFor(std::chrono::seconds{20}), 128 + SIGKILL) << "it must have got to this point";
  EXPECT_EQ(heldIn(oldUri()), death.inOld);
  EXPECT_EQ(heldIn(newUri()), death.inNew);

  LockManager next(std::make_shared<migration::MigratingDriver>(openStore(oldUri()), openStore(newUri()),
                                                                openStateStore(newUri()), migrationTiming()));
  const bool left = death.inOld || death.inNew;
  const bool taken = next.tryLock("order:1", {.ttl = fleetTtl}).has_value();
  EXPECT_NE(taken, left) << "what it left excludes others for as long as its lease runs";
  const Lock lock = next.lock("order:1", {.ttl = fleetTtl, .waitFor = std::chrono::seconds{20}});
  EXPECT_TRUE(lock.valid());
}

TEST_P(KilledProcess, HoldsUpTheNextStepAndNoLongerThanItsLocksCanLive) {
  decree(GetParam().phase);
  Process process(worker(oldUri(), GetParam().point));
  ASSERT_EQ(process.waitFor(std::chrono::seconds{20}), 128 + SIGKILL);
  LockManager next(std::make_shared<migration::MigratingDriver>(openStore(oldUri()), openStore(newUri()),
                                                                openStateStore(newUri()), migrationTiming()));
  EXPECT_TRUE(next.tryLock("another", {.ttl = fleetTtl}));
  const char* to = GetParam().phase == Phase::both ? "modern" : "both";
  advance(to);
  EXPECT_TRUE(statusSays("which has fallen silent, does not go by the present rules yet")) << status();
  EXPECT_TRUE(statusSays(std::string("current:   ") + to)) << status();
  EXPECT_TRUE(next.tryLock("order:1", {.ttl = fleetTtl, .waitFor = std::chrono::seconds{20}}));
}

INSTANTIATE_TEST_SUITE_P(
    Points, KilledProcess,
    ::testing::Values(Death{"LegacyBeforeTheStore", Phase::legacy, "before-acquire-old", false, false},
                      Death{"LegacyHolding", Phase::legacy, "after-acquire-old", true, false},
                      Death{"BothBetweenTheStores", Phase::both, "before-acquire-new", true, false},
                      Death{"BothHolding", Phase::both, "after-acquire-new", true, true},
                      Death{"BothBetweenTheReleases", Phase::both, "after-release-new", true, false},
                      Death{"ModernHolding", Phase::modern, "after-acquire-new", false, true}),
    [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace lockkeeper::test

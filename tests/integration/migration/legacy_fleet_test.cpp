#include "live_fleet.h"

namespace lockkeeper::test {
namespace {

/// Processes of ours beside legacy clients in PHP, on one database.
class LegacyFleet : public LiveFleet {
 protected:
  LegacyFleet() { configure(legacyUri(), newUri()); }

  /// Away from the legacy clients and back, with everybody at work. Returns what our processes have done.
  void migrate(const std::string& file, const std::string& lockClass, Work& work) const {
    const Processes fleet = start(4, worker(legacyUri()));
    const Processes legacy = startLegacy(file, lockClass);
    ASSERT_TRUE(statusSays("current:   legacy")) << status();
    ASSERT_TRUE(progress()) << errors();
    ASSERT_NO_FATAL_FAILURE(takeStep("both", "both"));

    advance("modern");
    ASSERT_TRUE(statusSays("a holder that is no member was seen in the old store")) << status();
    const long long before = counted();
    EXPECT_TRUE(waitUntil([&] { return counted() > before + 200; }, std::chrono::seconds{30})) << errors();
    EXPECT_NE(status().find("current:   both"), std::string::npos) << status();

    long long done = finish(legacy, "stop-legacy").count;
    ASSERT_TRUE(statusSays("current:   modern\n")) << "by itself: " << status();
    ASSERT_TRUE(progress()) << errors();

    ASSERT_NO_FATAL_FAILURE(takeStep("both", "both"));
    const Processes again = startLegacy(file, lockClass);
    ASSERT_NO_FATAL_FAILURE(takeStep("legacy", "legacy"));
    done += finish(again, "stop-legacy").count;
    work = finish(fleet, "stop");
    EXPECT_EQ(counted(), done + work.count) << errors();
  }
};

TEST_F(LegacyFleet, MovesAwayFromItsOldClientsAndBackAndLosesNothing) {
  // No bound on how long it stops: clients of the scheme now and then write a lock that nobody holds, and all
  // wait for its end, with or without us.
  Work work;
  migrate("legacy_lock.php", "LegacyLock", work);
}

TEST_F(LegacyFleet, WithThePatchNobodyStopsForLongerThanATtlEither) {
  Work work;
  migrate("patched_lock.php", "PatchedLock", work);
  EXPECT_EQ(errors(), "");
  EXPECT_LE(work.longestStop, longestStopAllowed());
}

}  // namespace
}  // namespace lockkeeper::test

#include "live_fleet.h"

namespace lockkeeper::test {
namespace {

/// Processes of ours beside legacy clients in PHP, on one database.
class LegacyFleet : public LiveFleet {
 protected:
  LegacyFleet() { configure(legacyUri(), newUri()); }

  std::string legacyUri() const {
    return "redis+legacy://127.0.0.1:" + std::to_string(redis.port()) + "/1?keyPrefix=lock:";
  }
  Processes startLegacy() const {
    std::filesystem::remove(folder / "stop-legacy");
    return start(4, {"php", std::string(LEGACY_FLEET) + "/legacy_worker.php", std::to_string(redis.port()),
                     "1", folder.path(), LEGACY_LOCK});
  }
};

TEST_F(LegacyFleet, MovesAwayFromItsOldClientsAndBackAndLosesNothing) {
  const Processes fleet = start(4, worker(legacyUri()));
  const Processes legacy = startLegacy();
  ASSERT_TRUE(statusSays("settled:   legacy")) << status();
  ASSERT_TRUE(progress()) << errors();
  ASSERT_NO_FATAL_FAILURE(takeStep("both", "both"));

  advance("modern");
  ASSERT_TRUE(statusSays("a holder that is no member was seen in the old store")) << status();
  const long long before = counted();
  EXPECT_TRUE(waitUntil([&] { return counted() > before + 200; }, std::chrono::seconds{30})) << errors();
  EXPECT_NE(status().find("settled:   both"), std::string::npos) << status();

  long long done = finish(legacy, "stop-legacy");
  ASSERT_TRUE(statusSays("settled:   modern\n")) << "by itself: " << status();
  ASSERT_TRUE(progress()) << errors();

  ASSERT_NO_FATAL_FAILURE(takeStep("both", "both"));
  const Processes again = startLegacy();
  ASSERT_NO_FATAL_FAILURE(takeStep("legacy", "legacy"));
  done += finish(again, "stop-legacy");
  done += finish(fleet, "stop");
  EXPECT_EQ(counted(), done) << errors();
}

}  // namespace
}  // namespace lockkeeper::test

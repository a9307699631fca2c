#include "live_fleet.h"
#include "postgres_server.h"

namespace lockkeeper::test {
namespace {

/// Clients in PHP and ours move from timestamps in Redis to rows of PostgreSQL, which also keeps the state.
using PhpToPostgres = LiveFleet;

TEST_F(PhpToPostgres, LosesNothingInAnyPhase) {
  PostgresServer server;
  server.makeLocks();
  const std::string uri = server.uri("postgres+version");
  configure(legacyUri(), uri);
  const Processes fleet = start(3, {MIGRATING_WORKER, legacyUri(), uri, uri, folder.path()});
  const Processes legacy = startLegacy("patched_lock.php", "PatchedLock");
  ASSERT_TRUE(statusSays("current:   legacy")) << status() << errors();
  ASSERT_TRUE(progress()) << errors();
  ASSERT_NO_FATAL_FAILURE(takeStep("both", "both"));
  const long long done = finish(legacy, "stop-legacy").count;
  ASSERT_NO_FATAL_FAILURE(takeStep("modern", "modern"));
  const Work work = finish(fleet, "stop");
  EXPECT_EQ(counted(), done + work.count) << errors();
  EXPECT_EQ(errors(), "");
  EXPECT_LE(work.longestStop, longestStopAllowed());
}

}  // namespace
}  // namespace lockkeeper::test

// A server that refuses all writes for a while, since it could not save its data (MISCONF).

#include <filesystem>

#include "lockkeeper/lock_manager.h"
#include "redis_fixture.h"
#include "temp_folder.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class RefusedWrites : public ::testing::TestWithParam<const char*> {
 protected:
  // A folder is in the place of its snapshot.
  void beginToRefuse() {
    std::filesystem::create_directory(folder / "dump.rdb");
    ASSERT_TRUE(waitUntil([&] {
      server.command({"BGSAVE"});
      return server.command({"SET", "other", "x"}).find("MISCONF") != std::string::npos;
    }));
  }
  void endRefusing() {
    std::filesystem::remove(folder / "dump.rdb");
    ASSERT_TRUE(waitUntil([&] {
      server.command({"BGSAVE"});
      return server.command({"SET", "other", "x"}) == "OK";
    }));
  }

  const TempFolder folder;
  const RedisServer server{{.arguments = {"--dir", folder.path().string(), "--save", "3600 1000000"}}};
  LockManager locks{openRedis(server.port(), "", GetParam())};
};

TEST_P(RefusedWrites, GrantNothingAndTellTheHolderInTime) {
  Lock shortly = locks.lock("shortly", {.ttl = 2s});
  Lock kept = locks.lock("kept", {.ttl = 10min, .renew = Renew::manual});
  beginToRefuse();
  EXPECT_THROW((void)locks.tryLock("another"), StoreUnavailable);
  EXPECT_THROW(kept.renew(), StoreUnavailable);
  EXPECT_TRUE(kept.valid()) << "its lease goes on";
  EXPECT_TRUE(waitUntil([&] { return shortly.lost().stop_requested(); }, 5s));
  EXPECT_FALSE(shortly.valid());
  EXPECT_EQ(kept.release(), ReleaseResult::unavailable);
}

TEST_P(RefusedWrites, EndByThemselvesAndLocksGoOn) {
  Lock held = locks.lock("held", {.ttl = 10min, .renew = Renew::manual});
  beginToRefuse();
  EXPECT_THROW(held.renew(), StoreUnavailable);
  endRefusing();
  held.renew();
  EXPECT_TRUE(locks.tryLock("another"));
  EXPECT_EQ(held.release(), ReleaseResult::released);
}

INSTANTIATE_TEST_SUITE_P(Schemes, RefusedWrites, ::testing::Values("redis", "redis+legacy"), schemeName);

}  // namespace
}  // namespace lockkeeper::test

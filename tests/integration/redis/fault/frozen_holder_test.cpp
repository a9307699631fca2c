#include <signal.h>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/fenced_write.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using FrozenHolder = RedisFaultTest;

TEST_F(FrozenHolder, KnowsOfItsLossWhenItWakesUpAndIsRefusedByTheResource) {
  const TempFolder folder;
  Process holder({LOCK_HOLDER, std::to_string(server.port()), folder.path()});
  ASSERT_TRUE(waitUntil([&] { return std::filesystem::exists(folder / "held"); }));
  const Fence former = std::stoull(readFile(folder / "held"));
  EXPECT_EQ(server.command(redis::fencedWrite("resource", former, "first")), "1");

  holder.signal(SIGSTOP);
  LockManager manager(direct);
  const Lock next = manager.lock("k", {.waitFor = 60s});
  ASSERT_GT(*next.fence(), former);
  EXPECT_EQ(server.command(redis::fencedClaim("resource", *next.fence())), "1");
  EXPECT_FALSE(std::filesystem::exists(folder / "end")) << "it must have slept through all of this";
  holder.signal(SIGCONT);

  ASSERT_TRUE(waitUntil([&] { return std::filesystem::exists(folder / "end"); }));
  EXPECT_EQ(readFile(folder / "end"), "told, 0\n");
  EXPECT_EQ(server.command({"GET", "resource"}), "first");
  EXPECT_EQ(holder.waitFor(20s), 0);
  EXPECT_TRUE(next.valid());
  EXPECT_EQ(server.command(redis::fencedWrite("resource", *next.fence(), "second")), "1");
  EXPECT_EQ(server.command({"GET", "resource"}), "second");
}

}  // namespace
}  // namespace lockkeeper::test

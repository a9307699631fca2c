// `lockkeeper run` while the primary of its group dies.

#include "command_under_lock.h"
#include "replication_group_of_three.h"

namespace lockkeeper::test {
namespace {

using CommandThroughFailover = ReplicationGroupOfThree;

TEST_F(CommandThroughFailover, OutlivesItsPrimaryButNotWithANamedLock) {
  const auto store = [&](const std::string& scheme) {
    return group.uri(scheme, database) + "?createTable=true";
  };
  const std::size_t killed = group.primary();
  CommandUnderLock named(store("mysql+getlock"), "named");
  expectOutlives(store("mysql+version"), "nightly", [&] { group.node(killed).kill(); });
  EXPECT_EQ(named.waitForIt(), 76) << named.errors();
  const Finished next = runOnce(store("mysql+getlock"), "named", "60s");
  EXPECT_EQ(next.exitCode, 0) << next.errors;
  group.rejoin(killed);
}

}  // namespace
}  // namespace lockkeeper::test

// The command on etcd:// stores, by their URI alone.

#include <algorithm>
#include <filesystem>
#include <list>
#include <string>
#include <vector>

#include "command_under_lock.h"
#include "etcd_cluster.h"
#include "process.h"
#include "temp_folder.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {
namespace {

class CommandOnEtcd : public ::testing::Test {
 protected:
  static EtcdCluster& cluster() {
    static EtcdCluster three;
    return three;
  }
  static std::vector<std::string> line(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, {"--store", cluster().uri() + "/orders?ioTimeout=5s"});
    arguments.insert(arguments.begin(), LOCKKEEPER_COMMAND);
    return arguments;
  }
  static Finished lockkeeper(const std::vector<std::string>& arguments) { return runToEnd(line(arguments)); }

  TempFolder folder;
};

TEST_F(CommandOnEtcd, RunsUnderTheLockWithItsFence) {
  const std::vector<std::string> shown{"run", "k",  "--",
                                       "sh",  "-c", "echo $LOCKKEEPER_KEY $LOCKKEEPER_FENCE"};
  const Finished first = lockkeeper(shown);
  const Finished second = lockkeeper(shown);
  EXPECT_EQ(first.exitCode, 0) << first.errors;
  ASSERT_TRUE(first.output.starts_with("k ")) << first.output;
  EXPECT_GT(std::stoull(second.output.substr(2)), std::stoull(first.output.substr(2)));
}

TEST_F(CommandOnEtcd, ShowsListsAndBreaksALock) {
  const Process holder(
      line({"run", "k/1", "--", "sh", "-c", "touch " + (folder / "up").string() + "; exec sleep 100"}));
  ASSERT_TRUE(waitUntil([&] { return std::filesystem::exists(folder / "up"); }));
  EXPECT_EQ(lockkeeper({"run", "k/1", "--", "true"}).exitCode, 75);
  const std::string pid = std::to_string(holder.pid());
  EXPECT_NE(lockkeeper({"show", "k/1"}).output.find(pid), std::string::npos);
  const std::string listed = lockkeeper({"list"}).output;
  EXPECT_NE(listed.find(pid), std::string::npos) << listed;
  EXPECT_NE(listed.find("k/1"), std::string::npos) << listed;
  EXPECT_EQ(lockkeeper({"break", "k/1", "--yes"}).exitCode, 0);
  EXPECT_EQ(lockkeeper({"run", "k/1", "--", "true"}).exitCode, 0);
}

TEST_F(CommandOnEtcd, SoManyRunAtATimeAndEachIsShownListedAndBroken) {
  std::list<Process> holders;
  for (const std::string name : {"first", "second"}) {
    holders.emplace_back(line({"run", "--permits", "2", "export", "--", "sh", "-c",
                               "touch " + (folder / name).string() + "; exec sleep 100"}));
    ASSERT_TRUE(waitUntil([&] { return std::filesystem::exists(folder / name); }));
  }
  EXPECT_EQ(lockkeeper({"run", "--permits", "2", "export", "--", "true"}).exitCode, 75);
  EXPECT_EQ(lockkeeper({"run", "export", "--", "true"}).exitCode, 75) << "it wants all of the key";
  EXPECT_EQ(lockkeeper({"run", "--permits", "3", "export", "--", "true"}).exitCode, 78);
  for (const char* look : {"show", "list"}) {
    const std::string seen = lockkeeper({look, "export"}).output;
    for (const Process& each : holders) {
      EXPECT_NE(seen.find(":" + std::to_string(each.pid())), std::string::npos) << seen;
    }
    EXPECT_NE(seen.find("1 of 2"), std::string::npos) << seen;
  }
  std::string watching = "exec";
  for (const std::string& word : line({"watch", "--json"})) watching += " '" + word + "'";
  const std::string seen = (folder / "seen").string();
  const Process watch({"sh", "-c", watching + " >" + seen});
  const auto lines = [&] {
    const std::string text = readFile(seen);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_TRUE(waitUntil([&] { return lines() == 2; })) << readFile(seen);
  EXPECT_EQ(lockkeeper({"break", "--yes", "export"}).output, "export was taken from its 2 holders\n");
  EXPECT_EQ(lockkeeper({"run", "export", "--", "true"}).exitCode, 0);
}

TEST_F(CommandOnEtcd, SaysInOneSentenceThatItKeepsNoLimits) {
  const Finished finished = lockkeeper({"limit", "--rate", "2/s", "k"});
  EXPECT_EQ(finished.exitCode, 78);
  EXPECT_NE(finished.errors.find("keeps no rate limits"), std::string::npos) << finished.errors;
}

TEST_F(CommandOnEtcd, OutlivesALeaderThatDies) {
  const std::size_t leader = cluster().leader();
  expectOutlives(cluster().uri(leader), "nightly", [&] { cluster().kill(leader); });
  cluster().start(leader);
}

}  // namespace
}  // namespace lockkeeper::test

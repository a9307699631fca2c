// The command on mysql+version:// stores.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "database_server.h"
#include "process.h"
#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

class CommandOnVersionRows : public ::testing::TestWithParam<Brand> {
 protected:
  static DatabaseServer& server() {
    if (GetParam() == Brand::mariadb) {
      static DatabaseServer mariadb(Brand::mariadb);
      return mariadb;
    }
    static DatabaseServer mysql(Brand::mysql);
    return mysql;
  }

  std::vector<std::string> line(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin() + 1, {"--store", store});
    arguments.insert(arguments.begin(), LOCKKEEPER_COMMAND);
    return arguments;
  }
  Finished lockkeeper(const std::vector<std::string>& arguments) const { return runToEnd(line(arguments)); }

  const std::string uri = server().uri(server().newDatabase());
  const std::string store = "mysql+version" + uri.substr(uri.find("://")) + "?createTable=true";
  TempFolder folder;
};

TEST_P(CommandOnVersionRows, RunsUnderTheLockWithItsFence) {
  const Finished first = lockkeeper({"run", "k", "--", "sh", "-c", "echo $LOCKKEEPER_KEY $LOCKKEEPER_FENCE"});
  const Finished second =
      lockkeeper({"run", "k", "--", "sh", "-c", "echo $LOCKKEEPER_KEY $LOCKKEEPER_FENCE"});
  EXPECT_EQ(first.exitCode, 0) << first.errors;
  ASSERT_TRUE(first.output.starts_with("k ")) << first.output;
  EXPECT_GT(std::stoull(second.output.substr(2)), std::stoull(first.output.substr(2)));
}

TEST_P(CommandOnVersionRows, ShowsListsAndBreaksALock) {
  const Process holder(
      line({"run", "k", "--", "sh", "-c", "touch " + (folder / "up").string() + "; exec sleep 100"}));
  ASSERT_TRUE(waitUntil([&] { return std::filesystem::exists(folder / "up"); }));
  EXPECT_EQ(lockkeeper({"run", "k", "--", "true"}).exitCode, 75);
  const std::string pid = std::to_string(holder.pid());
  EXPECT_NE(lockkeeper({"show", "k"}).output.find(pid), std::string::npos);
  EXPECT_NE(lockkeeper({"list"}).output.find(pid), std::string::npos);
  EXPECT_EQ(lockkeeper({"break", "k", "--yes"}).exitCode, 0);
  EXPECT_EQ(lockkeeper({"run", "k", "--", "true"}).exitCode, 0);
}

TEST_P(CommandOnVersionRows, KeepsThePasswordOutOfTheProcessList) {
  const Finished finished = lockkeeper({"run", "k", "--", "sh", "-c", "tr '\\0' ' ' < /proc/$PPID/cmdline"});
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  EXPECT_NE(finished.output.find(" run "), std::string::npos) << finished.output;
  EXPECT_EQ(finished.output.find("word"), std::string::npos) << finished.output;
}

TEST_P(CommandOnVersionRows, SaysWhatIsWrongWithoutThePassword) {
  const auto errorsOf = [&](const std::string& uriOfStore, int exitCode) {
    const Finished finished = runToEnd({LOCKKEEPER_COMMAND, "run", "--store", uriOfStore, "k", "--", "touch",
                                        (folder / "started").string()});
    EXPECT_EQ(finished.exitCode, exitCode) << finished.errors;
    EXPECT_EQ(finished.errors.find("s3cr3t"), std::string::npos) << finished.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "started"));
    return finished.errors;
  };
  const std::string here =
      "mysql+version://shop:s3cr3t@127.0.0.1:" + std::to_string(server().port()) + "/locks";
  EXPECT_NE(errorsOf(here, 78).find("Access denied"), std::string::npos);
  EXPECT_NE(errorsOf(here + "?tls=perhaps", 78).find("on or off"), std::string::npos);
  EXPECT_NE(errorsOf("mysql+version://shop:s3cr3t@127.0.0.1:1/locks", 69), "");
}

INSTANTIATE_TEST_SUITE_P(Brands, CommandOnVersionRows, ::testing::ValuesIn(allBrands),
                         [](const auto& each) { return std::string(nameOf(each.param)); });

}  // namespace
}  // namespace lockkeeper::test

#include <fstream>
#include <string>
#include <vector>

#include "process.h"
#include "temp_folder.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {
namespace {

class CheckCommand : public ::testing::Test {
 protected:
  Finished check(const std::vector<std::string>& lines, const std::vector<std::string>& options = {}) const {
    std::ofstream file(folder / "history");
    for (const std::string& each : lines) file << each << "\n";
    file.close();
    std::vector<std::string> command{LOCKKEEPER_COMMAND, "check"};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back(folder / "history");
    return runToEnd(command);
  }

  void refuses(const std::string& line, const std::string& named) const {
    const Finished finished = check({R"({"history":1})", line});
    EXPECT_EQ(finished.exitCode, 64) << line;
    EXPECT_EQ(finished.output, "");
    EXPECT_NE(finished.errors.find("line 2"), std::string::npos) << finished.errors;
    EXPECT_NE(finished.errors.find(named), std::string::npos) << finished.errors;
  }

  TempFolder folder;
};

const std::vector<std::string> twoHolders{
    R"({"history":1})",
    R"({"time":1,"phase":"invoke","process":"p1","id":1,"op":"lock","key":"a","kind":"exclusive"})",
    R"({"time":2,"phase":"ok","process":"p1","id":1,"until":9})",
    R"({"time":1,"phase":"invoke","process":"p2","id":1,"op":"lock","key":"a","kind":"exclusive"})",
    R"({"time":3,"phase":"ok","process":"p2","id":1,"until":9})"};

TEST_F(CheckCommand, SaysWhichLinesBreakWhichRule) {
  const Finished people = check(twoHolders);
  EXPECT_EQ(people.exitCode, 75);
  EXPECT_EQ(people.output.find("two-holders, line 5 and line 3: 'a' was granted to 'p2'"), 0U)
      << people.output;
  EXPECT_NE(people.output.find("2 processes, 2 calls: 1 violation\n"), std::string::npos) << people.output;
  const Finished programs = check(twoHolders, {"--json"});
  EXPECT_EQ(programs.exitCode, 75);
  EXPECT_EQ(programs.output.find(R"({"rule":"two-holders","line":5,"otherLine":3,"text":)"), 0U)
      << programs.output;
  EXPECT_NE(
      programs.output.find(R"({"lines":5,"processes":2,"calls":2,"violations":1,"leaksChecked":false})"),
      std::string::npos)
      << programs.output;
  EXPECT_EQ(check({twoHolders.begin(), twoHolders.begin() + 3}).exitCode, 0);
}

TEST_F(CheckCommand, NamesTheLineAndTheValueOfWhatIsNoHistory) {
  refuses("rubbish", "rubbish");
  refuses("[1]", "array");
  refuses(R"({"time":1.5,"phase":"end"})", "1.5");
  refuses(R"({"time":1,"phase":"enf"})", "enf");
  refuses(R"({"time":1,"time":2,"phase":"end"})", "twice");
  refuses(R"({"time":1,"phase":"end","tume":2})", "tume");
  refuses(R"({"time":1,"phase":"died","process":"p","key":"k"})", "key");
  refuses(R"({"time":1,"phase":"ok","process":"p","id":4,"until":9})", "4");
  refuses(R"({"policy":"sms","rate":"often"})", "often");
  EXPECT_EQ(check({}).exitCode, 64);
  EXPECT_EQ(check({R"({"history":2})"}).exitCode, 64);
}

}  // namespace
}  // namespace lockkeeper::test

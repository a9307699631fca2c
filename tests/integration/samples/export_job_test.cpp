#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>

#include "process.h"
#include "redis_server.h"
#include "temp_folder.h"

namespace lockkeeper::test {
namespace {

class ExportJob : public ::testing::Test {
 protected:
  /// Runs it with a command of the shell, whose $1 is the part.
  Finished run(const std::string& workers, const std::string& command) const {
    ProcessOptions options;
    options.environment["LOCKKEEPER_STORE"] = redis_.uri();
    options.environment["PATH"] = std::string(LOCKKEEPER_FOLDER) + ":" + std::getenv("PATH");
    return runToEnd({EXPORT_JOB, workers, "sh", "-c", command, "part"}, options);
  }

  RedisServer redis_;
  TempFolder folder_;
};

TEST_F(ExportJob, ThreeOfTwentyWorkersRunAtATimeAndAllFinish) {
  // Each says how many run beside it.
  const std::string marks = folder_ / "running";
  std::filesystem::create_directory(marks);
  const Finished finished = run("20", "mkdir " + marks + "/$1; ls " + marks + " | wc -l; sleep 0.1; rmdir " +
                                          marks + "/$1; touch " + (folder_ / "part").string() + "$1");
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  std::istringstream lines(finished.output);
  int most = 0;
  int workers = 0;
  for (std::string line; std::getline(lines, line) && line.find("parts") == line.npos; ++workers) {
    most = std::max(most, std::stoi(line));
  }
  EXPECT_EQ(workers, 20) << finished.output;
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 2) << "they run beside each other";
  EXPECT_TRUE(finished.output.ends_with("20 of 20 parts are exported\n")) << finished.output;
  for (int part = 1; part <= 20; ++part) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / ("part" + std::to_string(part)))) << part;
  }
}

TEST_F(ExportJob, SaysWhenAPartHasFailed) {
  const Finished finished = run("4", "test $1 != 2");
  EXPECT_EQ(finished.exitCode, 1);
  EXPECT_EQ(finished.output, "3 of 4 parts are exported\n") << finished.errors;
}

}  // namespace
}  // namespace lockkeeper::test

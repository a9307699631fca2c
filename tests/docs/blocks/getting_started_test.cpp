#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "blocks.h"
#include "reader.h"

// The page for a reader's first twenty minutes: what it shows is typed in its order, and its program built
// against the package as it is installed.

namespace lockkeeper::test {
namespace {

TEST(GettingStarted, TwoProcesses) {
  const Reader reader;
  std::vector<std::string> counts;
  std::string printed, exported;
  for (const Block& block : allBlocks()) {
    if (block.page != "docs/getting-started.md") continue;
    if (block.language == "cpp") reader.write("counter/main.cpp", block.text);
    if (block.language == "cmake") reader.write("counter/CMakeLists.txt", block.text);
    if (block.language != "sh") continue;
    const Finished finished =
        reader.type(exported + block.text, {{"CMAKE_PREFIX_PATH", INSTALLED_PACKAGE}, {"CXX", COMPILER}});
    ASSERT_EQ(finished.exitCode, 0) << block.page << ":" << block.line << ": " << finished.output
                                    << finished.errors;
    printed += finished.output;
    std::istringstream lines(block.text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("export ")) exported += line + "\n";  // Each block has a shell of its own.
    }
    if (block.text.find("cat count.txt") != std::string::npos) counts.push_back(finished.output);
  }
  for (const std::string line :
       {"PONG\n", "I have the lock\n", "exit code 75: somebody else has it\n", "my turn\n", "taken over\n"}) {
    EXPECT_NE(printed.find(line), std::string::npos) << line << " is not in " << printed;
  }
  EXPECT_EQ(printed.find("never printed"), std::string::npos);
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_LT(std::stoi(counts.front()), 40) << "on memory: nothing excludes the two processes from each other";
  EXPECT_EQ(counts.back(), "40\n");
}

}  // namespace
}  // namespace lockkeeper::test

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "blocks.h"
#include "reader.h"

namespace lockkeeper::test {
namespace {

TEST(Documentation, ShowsCommandsThatWork) {
  const std::set<std::string> elsewhere{"docs/migrating.md",  // integration/migration, which has a fleet
                                        "docs/getting-started.md"};  // getting_started_test.cpp
  const Reader reader;
  for (const Block& block : blocksOf("sh")) {
    if (elsewhere.contains(block.page)) continue;
    std::istringstream lines(block.text);
    int number = block.line;
    for (std::string line; std::getline(lines, line); ++number) {
      const Finished finished = reader.type(line);
      if (finished.exitCode == 0) continue;
      ADD_FAILURE_AT(block.page.c_str(), number)
          << line << "\nexit " << finished.exitCode << ": " << finished.output << finished.errors;
    }
  }
}

}  // namespace
}  // namespace lockkeeper::test

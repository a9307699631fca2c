#include <gtest/gtest.h>

#include <set>

#include "blocks.h"

namespace lockkeeper::test {
namespace {

/// Whether something in tests/ compiles, runs or reads the block; `text` is what programs print.
bool isChecked(const Block& block) {
  static const std::set<std::string> everywhere{"cpp", "json", "properties", "sh", "sql", "text", "xml"};
  if (block.language ==
      "cmake") {  // consumer/readme, consumer/source, getting_started_test.cpp, check_quotes
    static const std::set<std::string> pages{"README.md", "docs/getting-started.md", "docs/install.md",
                                             "docs/writing-a-driver.md"};
    return pages.contains(block.page);
  }
  if (block.language == "php") return block.page == "docs/drivers/legacy.md";  // integration/legacy
  return everywhere.contains(block.language);
}

TEST(Documentation, HasNoBlockThatNobodyChecks) {
  ASSERT_FALSE(allBlocks().empty());
  for (const Block& block : allBlocks()) {
    if (isChecked(block)) continue;
    ADD_FAILURE_AT(block.page.c_str(), block.line)
        << "no test is there for blocks in '" << block.language << "'; what programs print is 'text'";
  }
}

}  // namespace
}  // namespace lockkeeper::test

#include <Poco/RegularExpression.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "blocks.h"
#include "process.h"
#include "redis_server.h"

namespace lockkeeper::test {
namespace {

/// Somebody who types what the pages show, in a folder with the programs that they name.
class Reader {
 public:
  Reader() {
    addProgram("report.sh", "");
    addProgram("send", "");
    addProgram("dev", PROJECT "/dev | grep -q \"^  $1 \"");  // Only whether there is such a command.
  }

  Finished type(std::string line) const {
    const std::string server = "127.0.0.1:" + std::to_string(redis_.port());
    Poco::RegularExpression("127\\.0\\.0\\.1(:6379)?")
        .subst(line, server, Poco::RegularExpression::RE_GLOBAL);
    const std::string bin = std::filesystem::path(LOCKKEEPER_COMMAND).parent_path();
    return runToEnd({"sh", "-uc", "cd " + folder_.path().string() + "; PATH=" + bin + ":$PATH\n" + line});
  }

 private:
  void addProgram(const std::string& name, const std::string& script) {
    writeFile(folder_ / name, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }

  TempFolder folder_;
  RedisServer redis_;
};

TEST(Documentation, ShowsCommandsThatWork) {
  const Reader reader;
  for (const Block& block : blocksOf("sh")) {
    if (block.page == "docs/migrating.md") continue;  // These need a fleet: integration/migration has one.
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

#include <Poco/RegularExpression.h>
#include <Poco/String.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "live_fleet.h"

namespace lockkeeper::test {
namespace {

/// A piece of code in docs/migrating.md.
struct Block {
  std::string section;
  std::string language;
  std::string text;
};

/// Somebody who does what docs/migrating.md says, on servers of the test.
class Runbook : public LiveFleet {
 protected:
  static std::vector<Block> blocks() {
    std::istringstream page(readFile(RUNBOOK));
    std::vector<Block> found;
    std::string section;
    bool inside = false;
    for (std::string line; std::getline(page, line);) {
      if (line.starts_with("```")) {
        inside = !inside;
        if (inside) found.push_back({section, line.substr(3), ""});
      } else if (inside) {
        found.back().text += line + "\n";
      } else if (line.starts_with("## ")) {
        section = line.substr(3);
      }
    }
    return found;
  }

  /// With the test's server, where clients of the legacy fleet are on database 1.
  std::string here(std::string text) const {
    const std::string server = "127.0.0.1:" + std::to_string(redis.port());
    Poco::replaceInPlace(text, std::string("127.0.0.1:6379/1"), server + "/2");
    return Poco::replace(text, std::string("127.0.0.1:6379/0"), server + "/1");
  }

  /// As it stands there, but for times that a test can wait for.
  void writeConfiguration(const std::string& text) {
    std::string fast = here(text);
    Poco::RegularExpression("maxTtl( *)= .*").subst(fast, "maxTtl$1= 2s");
    Poco::RegularExpression("observation( *)= .*").subst(fast, "observation$1= 1s");
    configuration = folder / "shop.properties";
    writeFile(configuration, fast +
                                 "lockkeeper.migration.heartbeat = 200ms\n"
                                 "lockkeeper.migration.lease = 1500ms\n");
  }

  void type(const std::string& line) const {
    const std::string path = std::filesystem::path(LOCKKEEPER_COMMAND).parent_path();
    const Finished finished = runToEnd(
        {"sh", "-c", "cd " + folder.path().string() + " && PATH=" + path + ":$PATH && " + here(line)});
    EXPECT_EQ(finished.exitCode, 0) << line << "\n" << finished.errors;
    EXPECT_NE(finished.output, "") << line;
    if (line.find("advance") == std::string::npos || line.find("--dry-run") != std::string::npos) return;
    EXPECT_TRUE(statusSays("next step: none is under way")) << line << "\n" << status();
  }
};

constexpr const char* wholeWay = "The whole way";

/// What a comment of the whole way waits for: the words in quotes.
std::string awaitedBy(const std::string& comment) {
  const std::size_t begin = comment.find('"');
  if (begin == std::string::npos) return "";
  return comment.substr(begin + 1, comment.rfind('"') - begin - 1);
}

TEST_F(Runbook, TheWholeWayOnOneScreenMovesAwayFromPhpAndLosesNothing) {
  const std::vector<Block> page = blocks();
  const auto of = [&page](const std::string& language) {
    return *std::ranges::find_if(
        page, [&](const Block& block) { return block.section == wholeWay && block.language == language; });
  };
  writeConfiguration(of("properties").text);
  const Processes legacy = startLegacy();
  Processes fleet;
  long long done = 0;
  bool stopped = false;
  std::string awaited;
  std::istringstream lines(of("sh").text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) {
      ASSERT_NO_FATAL_FAILURE(type(line));
      if (awaited.empty()) continue;
      ASSERT_TRUE(statusSays(awaited)) << line << "\n" << status() << errors();
      ASSERT_TRUE(progress()) << errors();
      awaited.clear();
      continue;
    }
    if (line.find("Deploy the C++ services") != std::string::npos) fleet = start(4, worker(legacyUri()));
    if (line.find("Stop the PHP services") != std::string::npos) {
      done += finish(legacy, "stop-legacy").count;
      stopped = true;
    }
    awaited = awaitedBy(line);
  }
  ASSERT_TRUE(stopped);
  EXPECT_NE(status().find("current:   modern\n"), std::string::npos) << status();
  done += finish(fleet, "stop").count;
  EXPECT_EQ(counted(), done) << errors();
}

TEST_F(Runbook, LeadsToTheNewStoreAndBackWithEverybodyAtWork) {
  Processes legacy = startLegacy();
  Processes fleet;
  std::vector<std::string> reached;
  long long done = 0;
  bool configured = false;
  for (const Block& block : blocks()) {
    if (block.language == "properties" && !std::exchange(configured, true)) writeConfiguration(block.text);
    if (block.section == wholeWay) continue;
    if (block.section.starts_with("5.") && !legacy.empty()) {
      done += finish(legacy, "stop-legacy").count;
      legacy.clear();
    }
    if (block.section.starts_with("2.") && fleet.empty()) {
      fleet = start(4, worker(legacyUri()));
      ASSERT_TRUE(statusSays("current:   legacy")) << status() << errors();
    }
    if (block.language != "sh") continue;
    std::istringstream lines(block.text);
    for (std::string line; std::getline(lines, line);) ASSERT_NO_FATAL_FAILURE(type(line));
    if (fleet.empty()) continue;
    std::vector<std::string> phase;
    const std::string now = status();
    ASSERT_EQ(Poco::RegularExpression("current:   (.*)\n").split(now, phase), 2) << now;
    reached.push_back(phase[1]);
    ASSERT_TRUE(progress()) << errors();
  }
  EXPECT_EQ(reached, (std::vector<std::string>{"legacy", "both", "modern", "legacy"}));
  done += finish(fleet, "stop").count;
  EXPECT_EQ(counted(), done) << errors();
}

}  // namespace
}  // namespace lockkeeper::test

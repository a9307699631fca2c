#include <signal.h>

#include <array>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli_fixture.h"
#include "shown.h"

namespace lockkeeper::test {
namespace {

class InspectCommands : public CommandTest {
 protected:
  /// `lockkeeper run` that holds a key until it is destroyed; `where` is its options and the key.
  Process holding(const std::vector<std::string>& where) {
    const std::string up = "up" + std::to_string(++holders_);
    std::vector<std::string> arguments{"run", "--ttl", "50s"};
    arguments.insert(arguments.end(), where.begin(), where.end());
    for (const std::string& word :
         {std::string("--"), std::string("sh"), std::string("-c"), "touch " + file(up) + "; exec sleep 60"}) {
      arguments.push_back(word);
    }
    Process process = start(arguments);
    EXPECT_TRUE(fileAppears(up));
    return process;
  }

 private:
  int holders_ = 0;
};

TEST_F(InspectCommands, ShowSaysWhoHoldsAKey) {
  Process holder =
      start({"run", "--ttl", "50s", "k", "--", "sh", "-c", "touch " + file("up") + "; sleep 60"});
  ASSERT_TRUE(fileAppears("up"));
  const Finished shown = lockkeeper({"show", "k"});
  EXPECT_EQ(shown.exitCode, 0) << shown.errors;
  EXPECT_NE(shown.output.find("OWNER"), std::string::npos);
  EXPECT_NE(shown.output.find(":" + std::to_string(holder.pid())), std::string::npos) << shown.output;
  const std::string value = redis.command({"GET", "k"});
  EXPECT_EQ(shown.output.find(value.substr(0, 32)), std::string::npos) << "the token is secret";
}

TEST_F(InspectCommands, ShowSaysThatAKeyIsFree) {
  const Finished shown = lockkeeper({"show", "k"});
  EXPECT_EQ(shown.exitCode, 0);
  EXPECT_EQ(shown.output, "k is free\n");
}

TEST_F(InspectCommands, AKeyWithoutATtlIsHeldForEver) {
  redis.command({"SET", "k", std::string(32, 'a') + "@web:1"});
  for (const std::vector<std::string>& command : {std::vector<std::string>{"show", "k"}, {"list"}}) {
    const Finished shown = lockkeeper(command);
    EXPECT_EQ(shown.exitCode, 0) << shown.errors;
    EXPECT_NE(shown.output.find("for ever"), std::string::npos) << shown.output;
  }
}

TEST_F(InspectCommands, ListAlignsWhatItFindsUnderAPrefix) {
  const Process first = holding({"stock/1"});
  const Process second = holding({"stock/with a longer name"});
  const Process third = holding({"other"});
  const Finished listed = lockkeeper({"list", "stock/"});
  EXPECT_EQ(listed.exitCode, 0) << listed.errors;
  std::istringstream text(listed.output);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3U) << listed.output;
  const std::array columns{lines[0].find("OWNER"), lines[0].find("REMAINING"), lines[0].find("FENCE")};
  for (const auto column : columns) {
    for (std::size_t i = 1; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i].substr(column - 2, 2), "  ") << listed.output;
      EXPECT_NE(lines[i].at(column), ' ') << listed.output;
    }
  }
  EXPECT_EQ(lines[1].find("stock/1 "), 0U) << listed.output;
  EXPECT_EQ(lines[2].find("stock/with a longer name  "), 0U) << listed.output;
}

TEST_F(InspectCommands, ColumnsAreAlignedWhateverCharactersKeysHave) {
  for (const std::string key : {"stock:1", "Übung", "日本", "e\xcc\x81t\xc3\xa9"})
    redis.command({"SET", key, std::string(32, 'a') + "@web:1", "PX", "600000"});
  std::istringstream listed(lockkeeper({"list"}).output);
  std::vector<std::size_t> columns;
  for (std::string line; std::getline(listed, line);)
    columns.push_back(cli::columnsOf(line.substr(0, line.find(columns.empty() ? "OWNER" : "web:1"))));
  EXPECT_EQ(columns, (std::vector<std::size_t>(5, std::string_view("stock:1  ").size())));
}

TEST_F(InspectCommands, ListShowsTheKeysOfOneNamespaceWithoutIt) {
  const Process ours = holding({"--namespace", "shop", "k"});
  const Process theirs = holding({"--namespace", "bank", "secret"});
  const Finished listed = lockkeeper({"list", "--namespace", "shop"});
  EXPECT_NE(listed.output.find("\nk "), std::string::npos) << listed.output;
  EXPECT_EQ(listed.output.find("secret"), std::string::npos) << listed.output;
}

TEST_F(InspectCommands, NobodyForgesARowOrControlsTheTerminal) {
  const std::string token(32, 'a');
  redis.command({"SET", "k", token + "@x  1s  9\nforged", "PX", "60000"});
  redis.command({"SET", "l", token + "@\x1b[31mred", "PX", "60000"});
  redis.command({"SET", "m",
                 token + "@\xc2\x9b"
                         "31mred",
                 "PX", "60000"});
  for (const std::vector<std::string>& look :
       {std::vector<std::string>{"list"}, {"show", "k"}, {"show", "l"}}) {
    const Finished seen = lockkeeper(look);
    EXPECT_EQ(seen.exitCode, 0) << seen.errors;
    EXPECT_EQ(seen.output.find("\nforged"), std::string::npos) << seen.output;
    EXPECT_EQ(seen.output.find('\x1b'), std::string::npos) << seen.output;
    EXPECT_EQ(seen.output.find('\x9b'), std::string::npos) << seen.output;
  }
  EXPECT_NE(lockkeeper({"show", "l"}).output.find("'\\x1b[31mred'"), std::string::npos);
}

TEST_F(InspectCommands, BreakFreesAKey) {
  holdForeign("shop:k");
  EXPECT_EQ(lockkeeper({"break", "--yes", "-n", "shop", "k"}).exitCode, 0);
  EXPECT_TRUE(isFree("shop:k"));
  const Finished again = lockkeeper({"break", "-y", "-n", "shop", "k"});
  EXPECT_EQ(again.exitCode, 0);
  EXPECT_EQ(again.output, "k was free\n");
}

TEST_F(InspectCommands, BreakRefusesWithoutATerminalToAskOn) {
  holdForeign("k");
  const Finished refused = lockkeeper({"break", "k"});
  EXPECT_EQ(refused.exitCode, 64);
  EXPECT_NE(refused.errors.find("--yes"), std::string::npos) << refused.errors;
  EXPECT_FALSE(isFree("k"));
}

}  // namespace
}  // namespace lockkeeper::test

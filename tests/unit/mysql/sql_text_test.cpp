// Text from outside stands in no statement as it is.

#include "session/statements/sql_text.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <set>
#include <string>

#include "chosen_seed.h"

namespace lockkeeper::mysql {
namespace {

using ::testing::ElementsAre;

TEST(SqlText, OfTheApplicationIsHexadecimal) {
  EXPECT_EQ(textLiteral("a'b"), "_utf8mb4 x'612762'");
  EXPECT_EQ(textLiteral(""), "_utf8mb4 x''");
  EXPECT_EQ(textLiteral("\xe4\xb8\xad"), "_utf8mb4 x'e4b8ad'");
  EXPECT_EQ(textLiteral("\xf0\x9f\x98\x80"), "_utf8mb4 x'f09f9880'");
}

TEST(SqlText, ThatIsNotUtf8ComparesByteByByte) {
  for (const char* const bytes : {"\xff", "\xc3", "\xc3(", "\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                                  "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"}) {
    EXPECT_EQ(textLiteral(bytes).substr(0, 2), "x'") << textLiteral(bytes);
  }
}

TEST(SqlText, HasNothingThatACharacterSetCouldReadOtherwise) {
  std::mt19937 random(test::chosenSeed());
  const std::regex digits("(_utf8mb4 )?x'[0-9a-f]*'");
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 20, '\0');
    for (char& each : text) each = static_cast<char>(random());
    const std::string literal = textLiteral(text);
    EXPECT_TRUE(std::regex_match(literal, digits)) << literal;
    EXPECT_EQ(std::count(literal.begin(), literal.end(), '\''), 2);
    EXPECT_EQ(literal.size() - literal.find('\'') - 2, 2 * text.size());
  }
}

/// What follows in a line of C++ where a literal ends between two apostrophes of SQL.
std::set<std::string> pastedIn(const std::string& line) {
  std::set<std::string> pasted;
  bool inLiteral = false;
  bool open = false;     // between apostrophes
  bool changed = false;  // by this literal
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      inLiteral = !inLiteral;
      if (inLiteral) changed = false;
      if (inLiteral || !open || !changed) continue;
      const std::size_t next = line.find('"', i + 1);
      pasted.insert(line.substr(i + 1, next == std::string::npos ? next : next - i - 1));
    } else if (inLiteral && line[i] == '\'') {
      const bool inWord = std::isalpha(line[i - 1]) != 0 && std::isalpha(line[i + 1]) != 0;  // "the user's"
      open = inWord ? open : !open;
      changed = changed || !inWord;
    }
  }
  return pasted;
}

// Tokens, and names that are checked or hashed, have letters, digits and a few other characters by their
// making. Whatever else is added here must be a constant: text from outside is bound, or hexadecimal.
TEST(SqlText, StandsBetweenApostrophesOnlyWhereItIsOurOwn) {
  const std::set<std::string> known = {" : ",
                                       ";",
                                       ");",
                                       ").append(name).append(",
                                       ").append(each->claim.token.hex()).append(",
                                       " + name + ",
                                       " + name_ + ",
                                       " +",
                                       " + each + ",
                                       " + microsecondsNow + ",
                                       " + column + ",
                                       " + value + ",
                                       " + std::string(text.data(), end.ptr) + ",
                                       ") + table + ",
                                       " + table + "};
  for (const char* const folder : {"drivers/mysql/src", "adapters/inventory/src", "drivers/migration/src"}) {
    const auto root = std::filesystem::path(LOCKKEEPER_SOURCES) / folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        if (line.find_first_not_of(' ') == line.find("//")) continue;
        for (const std::string& each : pastedIn(line)) {
          EXPECT_TRUE(known.contains(each)) << entry.path() << ": " << line;
        }
      }
    }
  }
  EXPECT_THAT(pastedIn(R"(batch += "id = '" + order + "'";)"), ElementsAre(" + order + "));
}

}  // namespace
}  // namespace lockkeeper::mysql

// Whatever a server's defaults are, our statements mean the same on its sessions; or the log-in is refused,
// and the message names the variable.

#include "settings/session_variables.h"
#include "settings/short_chapter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "database_server.h"
#include "lockkeeper/mysql/server_rows.h"

namespace lockkeeper::test {
namespace {

class SessionSettings : public ::testing::TestWithParam<Brand> {
 protected:
  // Of one who has no rights on the server.
  std::string login() const {
    server.letClerkIn(database);
    return "clerk:clerk@127.0.0.1:" + std::to_string(server.port()) + "/" + database;
  }

  // What it was refused with; empty if all is well.
  std::string failureUnder(std::span<const Setting> settings) {
    std::vector<Setting> set;
    for (const Setting& each : settings) {
      if (variables.set(each)) set.push_back(each);
    }
    wereSet += set.size();
    std::string failure;
    try {
      chapter.run();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    variables.restore(set);
    return failure;
  }

  // All at once, because most of them change nothing; if something is wrong, by halves.
  void expectNoneMatters(std::span<const Setting> settings) {
    std::string failure = failureUnder(settings);
    if (failure.empty()) return;
    if (settings.size() > 1) {
      const std::size_t half = settings.size() / 2;
      expectNoneMatters(settings.first(half));
      expectNoneMatters(settings.subspan(half));
      return;
    }
    const Setting& only = settings.front();
    std::ranges::transform(failure, failure.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::tolower(c));
    });
    EXPECT_NE(failure.find(only.variable), std::string::npos)
        << only.variable << " = " << only.value << ": " << failure;
    refused[only.variable] += only.value + "; ";
  }

  DatabaseServer server{GetParam(), {"--innodb-flush-log-at-trx-commit=0", "--log-bin=changes"}};
  const std::string database = server.newDatabase();
  std::size_t wereSet = 0;
  std::map<std::string, std::string> refused;
  SessionVariables variables{server};
  ShortChapter chapter{login()};
};

TEST_P(SessionSettings, OfTheServerDoNotChangeWhatOurStatementsMean) {
  ASSERT_NO_THROW(chapter.run());
  const auto others = variables.others();
  EXPECT_GT(others.size(), 100U) << "those that the server knows";
  bool any = true;
  for (std::size_t i = 0; std::exchange(any, false); ++i) {
    std::vector<Setting> settings;
    for (const auto& [variable, values] : others) {
      if (i >= values.size()) continue;
      any = true;
      const Setting setting{variable, values[i]};
      if (refused.contains(variable)) {
        expectNoneMatters({&setting, 1});
      } else {
        settings.push_back(setting);
      }
    }
    expectNoneMatters(settings);
  }
  EXPECT_GT(wereSet, 300U);
  for (const auto& [variable, values] : refused) RecordProperty(variable, values);
}

class CharacterSets : public ::testing::TestWithParam<Brand> {};

// The server takes what comes for gbk whatever the client has said. There, the last byte of this character
// and a backslash are one character, so that no backslash could keep the quote behind it from ending a text.
TEST_P(CharacterSets, LetNoTextOutOfItsQuotes) {
  const std::string setting =
      GetParam() == Brand::mariadb ? "--skip-character-set-client-handshake" : "--init-connect=SET NAMES gbk";
  DatabaseServer server(GetParam(),
                        {setting, "--character-set-server=gbk", "--collation-server=gbk_chinese_ci"});
  const std::string database = server.newDatabase();
  server.letClerkIn(database);
  const std::string login = "clerk:clerk@127.0.0.1:" + std::to_string(server.port()) + "/" + database;
  server.execute("CREATE TABLE " + database +
                 ".orders (id VARBINARY(64), note VARCHAR(64) CHARACTER SET utf8mb4)");
  const mysql::SqlValue order = "\xe4\xb8\xad', ''); DELETE FROM orders; -- ";
  mysql::ServerRows rows(StoreUri::parse("mysql://" + login), {});
  auto transaction = rows.begin();
  transaction.execute("INSERT INTO orders VALUES (?, ?)", {"first", "first"});
  transaction.execute("INSERT INTO orders VALUES (?, ?)", {order, order});
  transaction.execute("INSERT INTO orders VALUES (?, ?)", {"not text: \xff", mysql::SqlValue()});
  const auto found =
      transaction.selectAll("SELECT id, note FROM orders WHERE id = ? AND note = ?", {order, order});
  EXPECT_EQ(found, (std::vector<mysql::SqlRow>{{order, order}}));
  EXPECT_EQ(transaction.selectAll("SELECT id FROM orders", {}).size(), 3U);
  transaction.commit();
  EXPECT_NO_THROW(ShortChapter(login).run());
}

INSTANTIATE_TEST_SUITE_P(All, CharacterSets, ::testing::ValuesIn(allBrands),
                         [](const auto& info) { return std::string(nameOf(info.param)); });

INSTANTIATE_TEST_SUITE_P(All, SessionSettings, ::testing::ValuesIn(allBrands),
                         [](const auto& info) { return std::string(nameOf(info.param)); });

}  // namespace
}  // namespace lockkeeper::test

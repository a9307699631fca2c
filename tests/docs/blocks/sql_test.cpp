#include <Poco/Data/Session.h>
#include <Poco/Exception.h>
#include <Poco/RegularExpression.h>
#include <Poco/StringTokenizer.h>
#include <gtest/gtest.h>

#include "blocks.h"
#include "database_server.h"
#include "postgres_server.h"

namespace lockkeeper::test {
namespace {

using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

/// The statements of a block, with 1 for each parameter.
Poco::StringTokenizer statementsOf(std::string text) {
  Poco::RegularExpression("--[^\n]*").subst(text, "", Poco::RegularExpression::RE_GLOBAL);
  std::ranges::replace(text, '?', '1');
  return {text, ";", Poco::StringTokenizer::TOK_TRIM | Poco::StringTokenizer::TOK_IGNORE_EMPTY};
}

bool isForPostgres(const Block& block) { return block.page == "docs/drivers/postgres.md"; }

TEST(Documentation, ShowsStatementsThatRun) {
  DatabaseServer server(Brand::mariadb);
  Poco::Data::Session session("MySQL", server.connectionString(server.newDatabase()));
  session << "CREATE TABLE stock (sku INT PRIMARY KEY, level INT NOT NULL, claim INT NOT NULL)", now;
  for (const Block& block : blocksOf("sql")) {
    if (isForPostgres(block)) continue;
    session << "REPLACE INTO stock VALUES (1, 500, 0)", now;
    for (const std::string& statement : statementsOf(block.text)) {
      try {
        session << statement, now;
      } catch (const Poco::Exception& error) {
        ADD_FAILURE_AT(block.page.c_str(), block.line) << statement << "\n" << error.displayText();
      }
    }
    int level = 0;
    session << "SELECT level FROM stock", into(level), now;
    EXPECT_EQ(level, 1) << block.page << ":" << block.line << ": the guarded write was not accepted";
  }
}

TEST(Documentation, ShowsStatementsThatRunOnPostgres) {
  PostgresServer server;
  server.makeLocks();
  int run = 0;
  for (const Block& block : blocksOf("sql")) {
    if (!isForPostgres(block)) continue;
    EXPECT_NO_THROW(server.execute(block.text)) << block.page << ":" << block.line;
    ++run;
  }
  EXPECT_GT(run, 0);
}

}  // namespace
}  // namespace lockkeeper::test

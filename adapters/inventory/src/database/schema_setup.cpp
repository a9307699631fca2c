#include "database/schema_setup.h"

#include <string_view>
#include <vector>

#include "database/ledger_tables.h"
#include "database/stock_tables.h"
#include "schema.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::int64_t articlesOfPage = 1000;

/// What tables of former versions lack.
struct Addition {
  std::string present;  ///< Selects a row when it is there.
  std::string statement;
};

std::string sqliteColumn(const std::string& table, const std::string& column) {
  return "SELECT 1 FROM pragma_table_info('" + table + "') WHERE name = '" + column + "'";
}

std::string serverColumn(const std::string& table, const std::string& column) {
  return "SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '" +
         table + "' AND column_name = '" + column + "'";
}

std::vector<Addition> additions(Dialect dialect) {
  const std::string orders = "lockkeeper_orders";
  const std::string stock = "lockkeeper_stock";
  if (dialect == Dialect::sqlite) {
    const std::string add = "ALTER TABLE lockkeeper_orders ADD COLUMN ";
    return {{sqliteColumn(orders, "written_at"), add + "written_at INTEGER NULL"},
            {sqliteColumn(orders, "written_by"), add + "written_by TEXT NOT NULL DEFAULT ''"},
            {sqliteColumn(orders, "level_after"), add + "level_after INTEGER NULL"},
            {sqliteColumn(stock, "buckets"),
             "ALTER TABLE lockkeeper_stock ADD COLUMN buckets INTEGER NOT NULL DEFAULT 1"}};
  }
  // Later than the column, so that rows which were there before get no time that is not theirs.
  const std::string clock =
      "ALTER TABLE lockkeeper_orders ALTER COLUMN written_at "
      "SET DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)";
  return {{"SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() "
           "AND table_name = 'lockkeeper_orders' AND index_name = 'lockkeeper_orders_sku'",
           "CREATE INDEX lockkeeper_orders_sku ON lockkeeper_orders (sku)"},
          {serverColumn(orders, "written_at"),
           "ALTER TABLE lockkeeper_orders ADD COLUMN written_at BIGINT NULL, "
           "ADD COLUMN written_by VARBINARY(64) NOT NULL DEFAULT '', ADD COLUMN level_after BIGINT NULL"},
          {serverColumn(orders, "written_at") + " AND LOWER(column_default) LIKE '%timestampdiff%'", clock},
          {serverColumn(stock, "buckets"),
           "ALTER TABLE lockkeeper_stock ADD COLUMN buckets BIGINT NOT NULL DEFAULT 1"}};
}

void createTables(Database& database) {
  constexpr std::string_view end = ";\n";
  database.run([&] {
    Transaction transaction = database.begin();
    std::string_view rest = database.dialect() == Dialect::sqlite ? sqliteSchema : mysqlSchema;
    for (auto at = rest.find(end); at != std::string_view::npos; at = rest.find(end)) {
      transaction.execute(std::string(rest.substr(0, at)), {});
      rest.remove_prefix(at + end.size());
    }
    commitAgain(transaction);
  });
}

bool isPresent(Database& database, const Addition& addition) {
  bool present = false;
  database.run([&] {
    Transaction transaction = database.begin(Access::read);
    present = !transaction.selectAll(addition.present, {}).empty();
  });
  return present;
}

void add(Database& database, const Addition& addition) {
  if (isPresent(database, addition)) return;
  try {
    database.run([&] {
      Transaction transaction = database.begin();
      transaction.execute(addition.statement, {});
      commitAgain(transaction);
    });
  } catch (const ConfigError& refusal) {
    // Somebody else may have added it meanwhile.
    if (isPresent(database, addition)) return;
    throw ConfigError(std::string(refusal.what()) + "; the tables need: " + addition.statement);
  }
}

/// Each article by itself, so that selling goes on.
void openLedger(Database& database, const std::string& who) {
  std::vector<std::string> skus;
  std::string last;
  do {
    database.run([&] {
      Transaction transaction = database.begin(Access::read);
      skus = LedgerTables(transaction, database.dialect()).unopened(last, articlesOfPage);
    });
    for (const std::string& sku : skus) {
      database.run([&] {
        Transaction transaction = database.begin();
        if (!StockTables(transaction, database.dialect()).touch(sku)) return;
        LedgerTables(transaction, database.dialect()).open(sku, 0, who);
        commitAgain(transaction);
      });
      last = sku;
    }
  } while (!skus.empty());
}

}  // namespace

void setUpSchema(Database& database, const std::string& who) {
  createTables(database);
  for (const Addition& each : additions(database.dialect())) add(database, each);
  openLedger(database, who);
}

}  // namespace lockkeeper::inventory

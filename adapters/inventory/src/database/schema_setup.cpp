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

// A table that is not there lacks nothing: it is made whole.
std::string onSqlite(const std::string& table, const std::string& present) {
  return present +
         " UNION ALL SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' "
         "AND name = '" +
         table + "')";
}

std::string onServer(const std::string& table, const std::string& present) {
  return present +
         " UNION ALL SELECT 1 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM information_schema.tables "
         "WHERE table_schema = DATABASE() AND table_name = '" +
         table + "')";
}

std::string sqliteColumn(const std::string& table, const std::string& column) {
  return onSqlite(table, "SELECT 1 FROM pragma_table_info('" + table + "') WHERE name = '" + column + "'");
}

/// A condition on a name, which is one of ours.
std::string isNamed(const std::string& column, const std::string& name) {
  return " AND " + column + " = '" + name + "'";
}

std::string serverColumn(const std::string& table, const std::string& column,
                         const std::string& condition = {}) {
  return onServer(table, "SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE()" +
                             isNamed("table_name", table) + isNamed("column_name", column) + condition);
}

/// That of the times of an article's rows.
std::string ledgerIndex(const std::string& table) {
  return onServer(table, "SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE()" +
                             isNamed("table_name", table) + isNamed("index_name", table + "_ledger") +
                             isNamed("column_name", "written_at"));
}

std::vector<Addition> additions(Dialect dialect) {
  if (dialect == Dialect::postgres) return {};  // No former version made tables there.
  const std::string orders = "lockkeeper_orders";
  const std::string changes = "lockkeeper_changes";
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
  return {
      {serverColumn(orders, "written_at"),
       "ALTER TABLE lockkeeper_orders ADD COLUMN written_at BIGINT NULL, "
       "ADD COLUMN written_by VARBINARY(64) NOT NULL DEFAULT '', ADD COLUMN level_after BIGINT NULL"},
      {serverColumn(orders, "written_at", " AND LOWER(column_default) LIKE '%timestampdiff%'"), clock},
      {serverColumn(stock, "buckets"),
       "ALTER TABLE lockkeeper_stock ADD COLUMN buckets BIGINT NOT NULL DEFAULT 1"},
      {ledgerIndex(orders), "CREATE INDEX lockkeeper_orders_ledger ON lockkeeper_orders (sku, written_at)"},
      {ledgerIndex(changes),
       "CREATE INDEX lockkeeper_changes_ledger ON lockkeeper_changes (sku, written_at)"}};
}

std::string_view scriptFor(Dialect dialect) {
  switch (dialect) {
    case Dialect::sqlite:
      return sqliteSchema;
    case Dialect::postgres:
      return postgresSchema;
    case Dialect::mysql:
      break;
  }
  return mysqlSchema;
}

/// Whether there is nothing to make. Two who make the same table at once would disturb each other in
/// PostgreSQL's catalogue, and one who makes an index that is there waits for all who sell.
bool hasAllOnPostgres(Transaction& transaction) {
  transaction.execute("SELECT pg_advisory_xact_lock(7598259032842892)", {});
  std::string present = "SELECT 1 WHERE true";
  for (const char* table : {"stock", "buckets", "orders", "changes", "reservations"})
    present += std::string(" AND to_regclass('lockkeeper_") + table + "') IS NOT NULL";
  return !transaction.selectAll(present, {}).empty();
}

void createTables(Database& database) {
  constexpr std::string_view end = ";\n";
  database.run([&] {
    Transaction transaction = database.begin();
    if (database.dialect() == Dialect::postgres && hasAllOnPostgres(transaction)) return;
    std::string_view rest = scriptFor(database.dialect());
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
  // First, because the tables' indexes are on columns that former versions lack.
  for (const Addition& each : additions(database.dialect())) add(database, each);
  createTables(database);
  openLedger(database, who);
}

}  // namespace lockkeeper::inventory

#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/environment.h"
#include "lockkeeper/export.h"
#include "lockkeeper/rows/row_database.h"

namespace lockkeeper {

/// A table of the application whose rows have a version. All names have 1 to 64 characters of [A-Za-z0-9_].
struct VersionedTable {
  std::string name;
  std::string key;                   ///< The column that identifies a row.
  std::vector<std::string> columns;  ///< The columns that are read and written back.
  std::string version = "version";   ///< An integer column that every writer of the row increments.
};

/// The outcome of one write inside a transaction.
enum class RowWrite {
  written,   ///< It counts once the transaction is committed.
  stale,     ///< Another client has written the row since it was read. Only a new transaction sees that.
  missing,   ///< There is no such row.
  declined,  ///< compute() decided not to write.
};

/// The outcome of an update. Except for `committed`, nothing has changed. `conflict`: at each attempt,
/// another client had written the row.
enum class RowOutcome { committed, conflict, notFound, declined };

/// How often an update is tried, and how long it waits in between.
struct RetryOptions {
  int attempts = 10;  ///< 1 to 1000, each in a new transaction.
  /// The pauses between them double from the first to the longest; half of each is random.
  std::chrono::milliseconds initialPause{2};    ///< 0 to longestPause.
  std::chrono::milliseconds longestPause{100};  ///< 0 to 1 h.
  Environment environment{};
};

/// Optimistic locking of an application's rows: reads a row and its version, computes, and writes only if the
/// row still has that version. If not, it tries again in a *new* transaction, because the old one may see the
/// old row for ever (docs/drivers/mysql.md). Thread-safe. Does no I/O except through the database.
class LOCKKEEPER_CORE_EXPORT VersionedRow {
 public:
  /// Throws std::invalid_argument for a name that is not allowed, and for options out of range.
  explicit VersionedRow(const VersionedTable& table, RetryOptions options = {});

  /// Reads the row of `key`, calls `compute(row, transaction)`, and writes the columns that it returns: a
  /// std::optional<SqlRow>, in the order of VersionedTable::columns, as in `row`. If it is empty, nothing is
  /// written. compute() runs once per attempt, and may read and write other rows in the same transaction.
  /// Blocks for the attempts and the pauses in between. Passes on what the database throws, except for
  /// contention. Does not try again after commit() has thrown.
  template <RowDatabase Database, class Compute>
  [[nodiscard]] RowOutcome update(Database& database, const SqlValue& key, Compute&& compute) const {
    for (int attempt = 1;; ++attempt) {
      if (const auto outcome = attemptOnce(database, key, compute)) return *outcome;
      if (attempt == options_.attempts) return RowOutcome::conflict;
      pauseAfter(attempt);
    }
  }

  /// One attempt, inside the caller's transaction.
  template <RowTransaction Transaction, class Compute>
  [[nodiscard]] RowWrite write(Transaction& transaction, const SqlValue& key, Compute&& compute) const {
    std::optional<SqlRow> row = transaction.select(select_, {key});
    if (!row) return RowWrite::missing;
    SqlValue version = takeVersion(*row);
    std::optional<SqlRow> columns = compute(std::as_const(*row), transaction);
    if (!columns) return RowWrite::declined;
    const SqlRow values = updateValues(std::move(*columns), key, std::move(version));
    return transaction.execute(update_, values) == 1 ? RowWrite::written : RowWrite::stale;
  }

 private:
  /// Empty if another attempt is needed.
  template <class Database, class Compute>
  std::optional<RowOutcome> attemptOnce(Database& database, const SqlValue& key, Compute& compute) const {
    bool committing = false;
    try {
      auto transaction = database.begin();
      const RowWrite result = write(transaction, key, compute);
      if (result == RowWrite::stale) return std::nullopt;
      if (result == RowWrite::missing) return RowOutcome::notFound;
      if (result == RowWrite::declined) return RowOutcome::declined;
      committing = true;
      transaction.commit();
      return RowOutcome::committed;
    } catch (const std::exception& failure) {
      if (committing || !database.isContention(failure)) throw;
      return std::nullopt;
    }
  }

  SqlValue takeVersion(SqlRow& row) const;
  SqlRow updateValues(SqlRow columns, const SqlValue& key, SqlValue version) const;
  void pauseAfter(int attempt) const;

  RetryOptions options_;
  std::size_t columns_;
  std::string select_;
  std::string update_;
};

}  // namespace lockkeeper

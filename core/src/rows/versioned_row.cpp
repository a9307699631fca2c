#include "lockkeeper/rows/versioned_row.h"

#include <stdexcept>
#include <string_view>

#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/internal/check_range.h"

namespace lockkeeper {
namespace {

constexpr int mostRowAttempts = 1000;
constexpr std::chrono::milliseconds mostRowPause{std::chrono::hours{1}};

// In quotes, so that a column may be called `order`.
std::string inBackticks(std::string_view what, const std::string& identifier) {
  checkName(what, identifier, "");
  return "`" + identifier + "`";
}

void checkRetries(const RetryOptions& options) {
  checkRange("attempts", options.attempts, 1, mostRowAttempts);
  checkDuration("longestPause", options.longestPause, std::chrono::milliseconds{0}, mostRowPause);
  checkDuration("initialPause", options.initialPause, std::chrono::milliseconds{0}, options.longestPause);
}

}  // namespace

VersionedRow::VersionedRow(const VersionedTable& table, RetryOptions options)
    : options_(std::move(options)), columns_(table.columns.size()) {
  checkRetries(options_);
  const std::string rows = inBackticks("the table name", table.name);
  const std::string version = inBackticks("the version column", table.version);
  const std::string ofKey = " WHERE " + inBackticks("the key column", table.key) + " = ?";
  select_ = "SELECT ";
  update_ = "UPDATE " + rows + " SET ";
  for (const std::string& each : table.columns) {
    const std::string column = inBackticks("a column", each);
    select_ += column + ", ";
    update_ += column + " = ?, ";
  }
  select_ += version + " FROM " + rows + ofKey;
  // Always written, because a server counts a row that stays as it was as not changed.
  update_ += version + " = " + version + " + 1" + ofKey + " AND " + version + " = ?";
}

SqlValue VersionedRow::takeVersion(SqlRow& row) const {
  // Text would be compared as a number: '1abc' is 1.
  if (row.size() != columns_ + 1 || !std::holds_alternative<std::int64_t>(row.back())) {
    throw ConfigError("the version column does not hold an integer: " + select_);
  }
  SqlValue version = std::move(row.back());
  row.pop_back();
  return version;
}

SqlRow VersionedRow::updateValues(SqlRow columns, const SqlValue& key, SqlValue version) const {
  if (columns.size() != columns_) {
    throw std::invalid_argument(std::to_string(columns.size()) + " values were computed for " +
                                std::to_string(columns_) + " columns");
  }
  columns.push_back(key);
  columns.push_back(std::move(version));
  return columns;
}

void VersionedRow::pauseAfter(int attempt) const {
  std::chrono::nanoseconds pause = options_.initialPause;
  while (--attempt > 0 && pause < options_.longestPause) pause *= 2;
  Clock& clock = *options_.environment.clock;
  Backoff backoff(pause, options_.longestPause);
  pauseUntil(clock, saturatingAdd(clock.now(), backoff.next(*options_.environment.random)));
}

}  // namespace lockkeeper

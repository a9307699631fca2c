#include "version/upkeep/unused_rows.h"

#include "version/texts/lock_texts.h"

namespace lockkeeper::mysql {
namespace {

// More than releases in between can have left behind.
constexpr int rowsOfPage = 200;

// A row that comes back begins with the time as its version. So it must have been away for longer than the
// server's clock may be set back, by a wrong time zone for example, and its version must not be ahead.
const std::string& isUnused() {
  static const std::string& text = *new std::string(
      "expires_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY AND version < " + std::string(microsecondsNow));
  return text;
}

}  // namespace

bool UnusedRows::isDueAfter(std::size_t releases) noexcept {
  if (stopped_) return false;
  const std::uint64_t before = releases_.fetch_add(releases, std::memory_order_relaxed);
  return before / releasesBetween != (before + releases) / releasesBetween;
}

void UnusedRows::purge(SessionPool::Use& session, Instant deadline) {
  const std::unique_lock alone(mutex_, std::try_to_lock);
  if (!alone) return;
  const auto rows = session
                        .ask("SELECT lock_key, " + isUnused() + " FROM " + table_ + " WHERE lock_key > " +
                                 literal(last_) + " ORDER BY lock_key LIMIT " + std::to_string(rowsOfPage),
                             deadline)
                        .rows;
  last_ = rows.empty() ? "" : rows.back().at(0).value_or("");
  std::string batch;
  for (const Reply::Row& row : rows) {
    if (row.at(1) != "1") continue;
    // Servers let only a SELECT skip what others keep. No row has the key NULL.
    batch += "SET @lk_key = NULL;SELECT lock_key INTO @lk_key FROM " + table_ +
             " WHERE lock_key = " + literal(row.at(0).value_or("")) + " AND " + isUnused() +
             " FOR UPDATE SKIP LOCKED;DELETE FROM " + table_ + " WHERE lock_key = @lk_key;";
  }
  if (!batch.empty()) session.ask("START TRANSACTION;" + batch + "COMMIT", deadline);
}

}  // namespace lockkeeper::mysql

#include "upkeep/unused_rows.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "lockkeeper/error.h"
#include "session/statements/sql_text.h"

namespace lockkeeper::mysql {
namespace {

// More than calls in between can have left behind.
constexpr int rowsOfPage = 200;

// The caller waits, and others with him, and their calls have been answered. Half of the time that is left is
// theirs.
constexpr std::chrono::milliseconds longestClearing{500};

// Half of the shortest statement that a server must allow.
constexpr std::size_t longestBatch = std::size_t{32} * 1024;

}  // namespace

void UnusedRows::clearAfter(std::size_t calls, SessionPool& sessions, Instant deadline) noexcept {
  if (stopped_) return;
  const std::uint64_t before = calls_.fetch_add(calls, std::memory_order_relaxed);
  if (before / callsBetween == (before + calls) / callsBetween) return;
  const std::unique_lock alone(mutex_, std::try_to_lock);
  if (!alone) return;
  try {
    const Instant now = sessions.clock().now();
    if (now >= deadline) return;
    deadline = now + std::min<std::chrono::nanoseconds>((deadline - now) / 2, longestClearing);
    SessionPool::Use session(sessions, deadline, now);
    session.expectSlowAnswers();
    try {
      clearNext(session, deadline);
      session.keep();
    } catch (const ConfigError&) {
      stopped_ = true;  // the account may not delete
    }
  } catch (const std::exception&) {
    // Another call clears them.
  }
}

void UnusedRows::clearNext(SessionPool::Use& session, Instant deadline) {
  const auto rows = session.ask(page(), deadline).rows;
  lastFamily_ = rows.empty() ? "-1" : rows.back().at(0).value_or("-1");
  lastKey_ = rows.empty() ? "" : rows.back().at(1).value_or("");
  std::string batch;
  const auto send = [&] {
    if (!batch.empty()) session.ask("START TRANSACTION;" + batch + "COMMIT", deadline);
    batch.clear();
  };
  for (const Reply::Row& row : rows) {
    if (row.at(2) != "1") continue;
    const std::string statements = remove(row);
    if (batch.size() + statements.size() > longestBatch) send();
    batch += statements;
  }
  send();
}

std::string UnusedRows::page() const {
  const std::string after = table_.key + " > " + hexLiteral(lastKey_);
  const std::string family = table_.family.empty() ? "0" : table_.family;
  const std::string order = table_.family.empty() ? table_.key : table_.family + "," + table_.key;
  return "SELECT " + family + "," + table_.key + "," + table_.isUnused + " FROM " + table_.name + " WHERE " +
         (table_.family.empty() ? after
                                : family + " > " + lastFamily_ + " OR (" + family + " = " + lastFamily_ +
                                      " AND " + after + ")") +
         " ORDER BY " + order + " LIMIT " + std::to_string(rowsOfPage) + ";COMMIT";
}

// Servers let only a SELECT skip what others keep. No row has the key NULL.
std::string UnusedRows::remove(const Reply::Row& row) const {
  const std::string family =
      table_.family.empty() ? "" : table_.family + " = " + row.at(0).value_or("") + " AND ";
  const std::string from = " FROM " + table_.name + " WHERE " + family + table_.key + " = ";
  return "SET @lk_key = NULL;SELECT " + table_.key + " INTO @lk_key" + from +
         hexLiteral(row.at(1).value_or("")) + " AND " + table_.isUnused + " FOR UPDATE SKIP LOCKED;DELETE" +
         from + "@lk_key;";
}

}  // namespace lockkeeper::mysql

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "hosts/session_pool.h"
#include "lockkeeper/base/random.h"

namespace lockkeeper::mysql {

/// Deletes rows that nobody uses any more: a few at a time, beside other calls, in the order of the primary
/// key. So a table has at most twice as many rows as are in use, and needs no index on the ends of rows,
/// which would cost each call a second write. Thread-safe.
class UnusedRows {
 public:
  struct Table {
    std::string name;      ///< As it stands in statements.
    std::string family;    ///< The column of small numbers in front of the key; empty: none.
    std::string key;       ///< The column of bytes.
    std::string isUnused;  ///< A condition on a row.
  };

  /// Begins to count calls at random, so that processes which make few calls delete rows, too.
  UnusedRows(Table table, Random& random) : table_(std::move(table)), calls_(random.upTo(callsBetween - 1)) {}

  /// To be called after so many calls. After each hundred of them, it looks at the next rows and deletes
  /// those that are unused, until `deadline` at the latest. Waits for no row that others keep. What goes
  /// wrong is none of the caller's business: the rows can wait.
  void clearAfter(std::size_t calls, SessionPool& sessions, Instant deadline) noexcept;

 private:
  static constexpr std::uint64_t callsBetween = 100;

  void clearNext(SessionPool::Use& session, Instant deadline);
  std::string page() const;
  std::string remove(const Reply::Row& row) const;

  const Table table_;
  std::atomic<std::uint64_t> calls_;
  std::atomic<bool> stopped_ = false;  // The account may not delete.
  std::mutex mutex_;
  // The row that was looked at last.
  std::string lastFamily_ = "-1";
  std::string lastKey_;
};

}  // namespace lockkeeper::mysql

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "hosts/session_pool.h"

namespace lockkeeper::mysql {

/// Deletes rows of locks that have been free for a day: a few at a time, beside releases, in the order of the
/// keys. So the table has at most twice as many rows as are in use, and needs no index on the ends of leases,
/// which would cost each claim and each release a second write. Thread-safe.
class UnusedRows {
 public:
  /// `table`, quoted, must outlive it. `first`: how many releases it counts as made already.
  UnusedRows(const std::string& table, std::uint64_t first) : table_(table), releases_(first) {}

  /// Counts releases. True when it is time for purge().
  bool isDueAfter(std::size_t releases) noexcept;

  /// Looks at the next rows, and deletes those that are unused. Waits for no row that others keep. Returns at
  /// once while another thread does so. Throws what SessionPool::Use::ask() does.
  void purge(SessionPool::Use& session, Instant deadline);

  /// The account may not delete: isDueAfter() is false from now on.
  void stop() noexcept { stopped_ = true; }

  /// So many releases between two looks, when drivers begin to count at random.
  static constexpr std::uint64_t releasesBetween = 100;

 private:
  const std::string& table_;
  std::atomic<std::uint64_t> releases_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::string last_;  // The key that was looked at last.
};

}  // namespace lockkeeper::mysql

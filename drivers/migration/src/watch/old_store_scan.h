#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/migration/state_store.h"

namespace lockkeeper::migration {

/// A lock that was seen in the old store.
struct OldLock {
  std::string key;
  std::string owner;  ///< The label of its holder.
};

/// How many locks of outsiders are told of at once.
constexpr std::size_t mostOutsiders = 16;

/// Whether the target takes the key away from the old store.
bool leavesOldStore(std::string_view key, const MigrationState& state);

/// Looks through the old store, a part with each heartbeat, for locks that the target takes away from it and
/// whose holders are no members. So that a store that others live from is not kept busy, it lists at most 100
/// pages of keys with a heartbeat and 100 a second, and begins no page after 1,000 locks that it has read in
/// that second; on Redis, a page is one SCAN with COUNT 500 and a script for each key that leaves the store.
/// Not thread-safe.
class OldStoreScan {
 public:
  /// `heartbeat` is how often goOn() is called.
  OldStoreScan(std::shared_ptr<LockDriver> oldStore, std::chrono::milliseconds heartbeat,
               std::shared_ptr<Clock> clock)
      : oldStore_(std::move(oldStore)), heartbeat_(heartbeat), clock_(std::move(clock)) {}

  /// From where it has stopped, or another member, with the same rules; else from the first page.
  void begin(const MigrationState& state);
  /// Until it begins again; the pass remains one.
  void pause() { underWay_ = false; }
  /// The next one begins at the first page.
  void restart() {
    place_.next.clear();
    underWay_ = whole_ = false;
  }
  /// Time may have passed that nobody has observed: a pass that began before it does not count.
  void interrupt() { underWay_ = whole_ = false; }
  bool underWay() const { return underWay_; }
  /// Whether the last pass has ended and began at the first page here, without an interruption. Others
  /// find outsiders, but do not show that there are none.
  bool complete() const { return whole_ && !underWay_ && place_.next.empty(); }
  /// Where it goes on.
  const ScanPlace& place() const { return place_; }

  /// Goes on as far as the time since the last part allows, and returns the first `mostOutsiders` of these
  /// locks, those of one page; none when the store cannot list its locks. Has ended after the last page. If
  /// there are `mostOutsiders`, the rest of that page was not looked at. Blocks until `deadline` plus one I/O
  /// timeout at most. Throws as Browsable::listBusy().
  std::vector<OldLock> goOn(const MigrationState& state, Instant deadline);

 private:
  const std::shared_ptr<LockDriver> oldStore_;
  const std::chrono::milliseconds heartbeat_;
  const std::shared_ptr<Clock> clock_;
  ScanPlace place_;
  bool underWay_ = false;
  bool whole_ = false;               // this pass
  Instant lastAt_ = Instant::min();  // the last part
};

}  // namespace lockkeeper::migration

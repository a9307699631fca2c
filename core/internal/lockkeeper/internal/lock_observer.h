#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// The key as the store knows it and, of a share of it, its grant: see shareName().
using HolderName = std::pair<std::string, std::string>;

/// What one look at a store has found.
struct LOCKKEEPER_CORE_EXPORT LockListing {
  std::map<HolderName, Holder> holders;
  std::map<std::string, std::vector<Waiter>> waiters;  ///< By key, of the keys for which somebody waits.
  bool tellsWaiters = false;                           ///< Whether the store can list them, for this account.

  /// How many wait for the key; empty when the store does not tell.
  std::optional<std::size_t> waiting(const std::string& key) const;
};

/// Lists all locks with the prefix, their holders and waiters. `goesOn` is asked now and then: when it is
/// false, the listing ends early and is not complete. Blocks for a minute at most for each request. Throws as
/// Browsable::list(), and ConfigError when the store cannot list its locks.
LOCKKEEPER_CORE_EXPORT LockListing listLocks(LockDriver& driver, std::string_view prefix,
                                             const std::function<bool()>& goesOn);

/// One who holds a key or a share of it, as he was seen.
struct SeenGrant {
  std::uint64_t id = 0;  ///< Tells it from all others that the observer has seen.
  std::string key;       ///< As the store knows it.
  Holder holder{};
  Instant since{};           ///< When it was seen first.
  bool sinceBefore = false;  ///< It may be older.
  std::size_t turns =
      0;  ///< How many grants of the key were seen, with this one. A share: of this one alone.
  std::optional<Instant> end{};         ///< Of its lease, as it was seen last; empty: endless or unknown.
  std::chrono::milliseconds longest{};  ///< The longest rest of its lease that was seen.
};

/// What was seen of locks by looking again and again. A grant that came and went between two looks was not.
/// One thread at a time.
class LOCKKEEPER_CORE_EXPORT LockObserver {
 public:
  enum class Kind {
    held,    ///< It was there already when the look came after a gap.
    taken,   ///< The key was free.
    passed,  ///< From another holder, or from the same one, which has it again.
    freed,
  };
  struct Change {
    Kind kind;
    SeenGrant grant;                    ///< When freed, as it was.
    std::optional<SeenGrant> former{};  ///< Of `passed` only: whose the key was before.
    /// The grant that is over was not released: nobody renewed it, and its lease ran out. Not known, and
    /// false, of a lease so short that a holder who renews it could have released it.
    bool expired = false;
  };

  /// Notes what is held now, and returns what has changed, by key. `afterGap`: nobody has looked right
  /// before, so that nobody knows when what is new has come. Of a key that is shared, each holder is noted
  /// for himself: what he has is taken and freed, and passed to nobody.
  std::vector<Change> compare(std::map<HolderName, Holder> holders, Instant now, bool afterGap);

  /// Forgets what was seen, but for the numbers of grants: none is given twice.
  void forget() noexcept;

  /// Those who hold something, by key.
  const std::map<HolderName, SeenGrant>& held() const noexcept { return held_; }
  /// The grant of that number, while it is held.
  const SeenGrant* grant(std::uint64_t id) const;

 private:
  std::map<HolderName, SeenGrant> held_;
  std::map<std::uint64_t, HolderName> names_;
  std::map<std::string, std::size_t, std::less<>> turns_;  // of keys that were freed
  std::uint64_t lastId_ = 0;
  Instant lastLook_{};
};

}  // namespace lockkeeper

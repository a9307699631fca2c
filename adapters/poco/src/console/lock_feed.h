#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "console/json.h"
#include "console/timelines.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/internal/lock_observer.h"

namespace lockkeeper::poco {

/// Who waits for a key, in the order in which they are served.
struct SeenWaiter {
  std::string owner;
  std::string share{};  ///< In words; empty: all of the key.
  Instant since{};
};

/// What the processes of a migration have agreed on.
struct SeenMigration {
  std::string name;
  std::string rules{};  ///< Or why they are not known.
  std::optional<Instant> since{};
};

/// Looks at a store's locks when somebody asks, and tells each one who asks what has changed since he was
/// told last. A grant is named by its number, so that a request can name it without secrets. Thread-safe.
class LockFeed {
 public:
  struct Source {
    std::shared_ptr<LockDriver> store;
    KeyScope scope;
    std::chrono::milliseconds interval;
  };

  explicit LockFeed(Source source);

  /// The present version and what has changed after the version `seen`, as a JSON object; everything if that
  /// is 0, or too long ago. Looks at the store first, unless somebody has done so less than `interval` ago,
  /// or does so now. Blocks for a listing. Throws std::bad_alloc.
  std::string changesAfter(std::uint64_t seen);

  /// The grant of that number, if the last look has seen it.
  std::optional<SeenGrant> grant(std::uint64_t id) const;
  /// The key as it is shown.
  std::string shownKey(const SeenGrant& grant) const;

  /// An operator has taken the lock from this holder.
  void broken(const SeenGrant& grant);

  /// What was seen of the store, as a JSON object: the grants that came and went between looks, of the keys
  /// that changed last and of the one that is shown like this, those that were lost, and the migration that
  /// it is in.
  std::string activity(std::string_view shownKey) const;

 private:
  struct Found {
    LockListing locks;
    std::map<std::string, std::vector<SeenWaiter>> waiters;  // by their keys
    std::optional<SeenMigration> migration;
  };
  /// What the pages know of a grant besides what does not change.
  struct Sent {
    std::int64_t endsAt;  // milliseconds of boot time, endUnknown or endless
    std::string owner;
    bool hasFence;
  };

  void look();
  /// What was seen may be incomplete: the next look begins anew.
  void forgetAll() noexcept;
  Found list() const;
  std::optional<SeenMigration> lookAtMigration() const;
  /// `afterGap`: nobody has looked right before.
  std::string compare(Found found, Instant now, bool afterGap);
  void note(const SeenGrant& grant, std::string_view what, Instant now, bool afterGap);
  std::string compareWaiters(std::map<std::string, std::vector<SeenWaiter>> found);
  std::string everything() const;
  std::string row(const SeenGrant& grant) const;
  std::string queue(const std::string& key, const std::vector<SeenWaiter>& waiters) const;

  const Source source_;
  const std::uint64_t epoch_;  // where versions begin: other processes may serve the same page

  std::mutex looking_;   // of whoever looks, and of the next two
  Instant nextLook_{};   // not earlier
  Instant gapBegins_{};  // if nobody has looked by then

  mutable std::mutex mutex_;  // of all below
  std::uint64_t version_ = 0;
  LockObserver observer_;
  std::map<std::uint64_t, Sent> sent_;                      // by the number of the grant
  std::map<std::string, std::vector<SeenWaiter>> waiters_;  // by the keys that have some
  std::optional<SeenMigration> migration_;
  Timelines timelines_;
  std::deque<std::string> recent_;  // what changed, up to version_
  std::string fault_;               // of the last look; empty: none
  std::int64_t tookMs_ = 0;
};

}  // namespace lockkeeper::poco

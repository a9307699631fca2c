#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
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

/// Has a store's locks observed while somebody looks, and tells each viewer what has changed since he was
/// told last. A grant is named by its number, so that a request can name it without secrets. Thread-safe.
class LockFeed {
 public:
  struct Source {
    std::shared_ptr<LockDriver> store;
    KeyScope scope;
    std::chrono::milliseconds interval;
    std::size_t mostViewers;
  };
  struct Update {
    std::uint64_t version = 0;
    std::string text;  ///< Lines of JSON. Empty: nothing is new.
  };

  explicit LockFeed(Source source);
  ~LockFeed();

  /// False when there are enough viewers, or after stop().
  bool enter();
  void leave();
  /// What is new after `seen`: at first everything. Waits for it until `until`, or stop().
  Update next(std::uint64_t seen, Instant until);
  bool stopped() const;

  /// The grant of that number, if the last look has seen it.
  std::optional<SeenGrant> grant(std::uint64_t id) const;
  /// The key as it is shown.
  std::string shownKey(const SeenGrant& grant) const;

  /// What was seen of the store, as a JSON object: the grants that came and went between looks, of the keys
  /// that changed last and of the one that is shown like this, and the migration that it is in.
  std::string activity(std::string_view shownKey) const;

  void stop();

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

  void run();
  /// One look at the store, without `lock`, and what it has found, under it. Throws std::bad_alloc.
  void lookAndTell(std::unique_lock<std::mutex>& lock, Instant began);
  /// What was seen may be incomplete: the next look begins anew.
  void forgetAll() noexcept;
  Found list() const;
  std::optional<SeenMigration> lookAtMigration() const;
  std::string compare(Found found, Instant now);
  void note(const SeenGrant& grant, std::string_view what, Instant now);
  std::string compareWaiters(std::map<std::string, std::vector<SeenWaiter>> found);
  std::string everything() const;
  std::string row(const SeenGrant& grant) const;
  std::string queue(const std::string& key, const std::vector<SeenWaiter>& waiters) const;
  void publish(const std::string& changes, Instant now, std::chrono::nanoseconds took);

  const Source source_;
  mutable std::mutex mutex_;
  std::condition_variable wakePoller_, wakeViewers_;
  std::size_t viewers_ = 0;
  bool stopped_ = false;
  bool fresh_ = false;  // the rows were looked up since viewers are here
  bool unseen_ = true;  // nobody looked, or could, right before the next look
  std::uint64_t version_ = 0;
  LockObserver observer_;
  std::map<std::uint64_t, Sent> sent_;                      // by the number of the grant
  std::map<std::string, std::vector<SeenWaiter>> waiters_;  // by the keys that have some
  std::optional<SeenMigration> migration_;
  Timelines timelines_;
  std::deque<std::string> recent_;  // what changed, up to version_
  std::string status_;              // of the last look
  std::once_flag joined_;
  std::thread poller_;
};

}  // namespace lockkeeper::poco

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/export.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/store/value_store.h"

namespace lockkeeper {

/// What get() does when the store of values or locks fails and there is no stale value.
enum class WhenDown {
  load,  ///< It runs the loader without a lock: one load at a time for each key in each process.
  fail,  ///< It throws the store's error. For a database that cannot bear the load without the cache.
};

/// How a CachedLoader works. Values outside their range are refused by its constructor.
struct CacheOptions {
  /// A prefix of each key, separated by a ':', so that caches can share a store. [A-Za-z0-9_.-]{0,64}; "" for
  /// none.
  std::string keyNamespace{};

  /// How long a value is served without asking the loader: 1 ms to 30 days.
  std::chrono::milliseconds freshFor{std::chrono::minutes{1}};

  /// By up to how much of it freshFor is shortened at random, in percent (0 to 90), so that values that were
  /// stored together do not expire together.
  unsigned jitterPercent = 10;

  /// How long after freshFor a value is still served while somebody loads a new one, or when the loader
  /// fails: 0 (never) to 30 days. It costs a second copy of the value in the store.
  std::chrono::milliseconds staleFor{0};

  /// How long get() waits for somebody else's load when there is no stale value: 0 to 24 h.
  std::chrono::milliseconds waitFor{std::chrono::seconds{2}};

  /// How long the cache remembers that the loader returned nothing: 0 (not at all) to 30 days.
  std::chrono::milliseconds negativeFor{0};

  /// How long a load keeps others from loading at most: 10 ms to 1 h. The result of a slower load is not
  /// stored.
  std::chrono::milliseconds loadFor{std::chrono::seconds{30}};

  /// The lease of the lock under which a value is loaded, which is renewed up to loadFor. When the loading
  /// process dies, others load after this time.
  std::chrono::milliseconds lockTtl{std::chrono::seconds{5}};

  WhenDown whenDown = WhenDown::load;

  /// How long one request to the store of values may take: 1 ms to 1 h.
  std::chrono::milliseconds operationTimeout{500};
};

/// A read-through cache for many processes. When a key has expired, one caller runs the loader under a lock;
/// all others get the stale value or wait for the fresh one. Thread-safe.
///
/// The age of a value counts from the beginning of its load. It is at most freshFor, or freshFor + staleFor
/// for a stale value, plus the time that the store takes to keep it. The store counts all ages, so no two
/// clocks are compared. Waiters of one process share one load, and only one of them asks for the lock. After
/// fork() the child's copy throws ForkedError.
class LOCKKEEPER_CORE_EXPORT CachedLoader {
 public:
  /// Loads the value of a key from its source; empty when there is none. The key is as it was given to get().
  /// Runs on the thread of a caller of get().
  using Loader = std::function<std::optional<std::string>(std::string_view key)>;

  /// The clock, the random source and the listener are those of `locks`. The listener is told how each get()
  /// was served, and what went wrong. Throws std::invalid_argument that names the first option out of range.
  CachedLoader(std::shared_ptr<ValueStore> values, std::shared_ptr<LockManager> locks, Loader loader,
               CacheOptions options = {});
  CachedLoader(CachedLoader&&) noexcept;
  CachedLoader& operator=(CachedLoader&&) noexcept;

  /// The loader and the listener may call it during a call of this object, which then continues.
  ~CachedLoader();

  /// Returns the value, or empty when the loader has none. Throws std::invalid_argument for a bad key (1 to
  /// 512 bytes with the namespace and a ":stale"), what the loader throws if there is no stale value,
  /// LockTimeout when somebody else's load took longer than waitFor, and with WhenDown::fail the store's
  /// error. A loader that calls get(), on its own thread, for the key that it loads gets a std::logic_error.
  /// Blocks for the loader, or for waitFor, plus a few requests to the stores.
  std::optional<std::string> get(std::string_view key);

  /// Forgets the value: call it after the data that the loader reads has been changed and committed. It waits
  /// for a load that began before, whose value is not kept. So no get() that begins afterwards, in any
  /// process that reaches the stores, returns a value from before the change. Throws a store's error or
  /// LockTimeout; then the old value may be served until it expires. Blocks for a load that is under way, at
  /// most loadFor plus lockTtl.
  void invalidate(std::string_view key);

 private:
  class Impl;
  std::shared_ptr<Impl> impl() const;

  std::shared_ptr<Impl> impl_;
};

}  // namespace lockkeeper

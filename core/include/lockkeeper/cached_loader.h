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

/// What get() does when the stores of values and locks fail and there is no stale value.
enum class WhenDown {
  load,  ///< It runs the loader without a lock: one at a time for each key in each process.
  fail,  ///< It throws the store's error. For a database that the missing cache would bring down.
};

/// How a CachedLoader works. Values outside their range are refused by its constructor.
struct CacheOptions {
  /// Put before each key with a ':', so that caches share a store. [A-Za-z0-9_.-]{0,64}; "" for none.
  std::string keyNamespace{};

  /// How long a value is served without asking the loader: 1 ms to 30 days.
  std::chrono::milliseconds freshFor{std::chrono::minutes{1}};

  /// How much of freshFor is taken off at random, in percent (0 to 90), so that values which were stored
  /// together do not end together.
  unsigned jitterPercent = 10;

  /// How long after that a value is still served while somebody loads a new one, or when the loader fails:
  /// 0 (never) to 30 days. Costs a second copy of the value in the store.
  std::chrono::milliseconds staleFor{0};

  /// How long get() waits for the load of somebody else when there is no stale value: 0 to 24 h.
  std::chrono::milliseconds waitFor{std::chrono::seconds{2}};

  /// How long it is remembered that the loader returned nothing: 0 (not at all) to 30 days.
  std::chrono::milliseconds negativeFor{0};

  /// The longest that a load keeps others from loading: 10 ms to 1 h. What a slower one returns is not
  /// stored.
  std::chrono::milliseconds loadFor{std::chrono::seconds{30}};

  /// The lease of the lock under which a value is loaded, renewed up to loadFor: others load that much later
  /// when the loading process has died.
  std::chrono::milliseconds lockTtl{std::chrono::seconds{5}};

  WhenDown whenDown = WhenDown::load;

  /// How long one request to the store of values may take: 1 ms to 1 h.
  std::chrono::milliseconds operationTimeout{500};
};

/// A read-through cache for many processes: the loader of a key that has expired is run once, under a lock,
/// while all others are served the stale value or wait for the fresh one. Thread-safe.
///
/// The age of a value counts from the beginning of its load: it is at most freshFor, or freshFor + staleFor
/// when it is served stale, plus what the store takes to keep it. The store counts all ages, so that no two
/// clocks are compared. Waiters of one process share one load; only one of them asks for the lock. After
/// fork() the child's copy throws ForkedError.
class LOCKKEEPER_CORE_EXPORT CachedLoader {
 public:
  /// Loads the value of a key, as it was given to get(), from where it lives; empty when there is none. Runs
  /// on the thread of a caller of get().
  using Loader = std::function<std::optional<std::string>(std::string_view key)>;

  /// The clock, the random and the listener are those of `locks`: the listener hears how each get() was
  /// served, and what went wrong. Throws std::invalid_argument that names the first option out of range.
  CachedLoader(std::shared_ptr<ValueStore> values, std::shared_ptr<LockManager> locks, Loader loader,
               CacheOptions options = {});
  CachedLoader(CachedLoader&&) noexcept;
  CachedLoader& operator=(CachedLoader&&) noexcept;

  /// May be called by the loader or the listener in a call of this object, which then goes on.
  ~CachedLoader();

  /// The value, or empty when the loader has none. Throws std::invalid_argument for a bad key (1 to 512 bytes
  /// with the namespace and a ":stale"), what the loader throws when there is no stale value, LockTimeout
  /// when somebody else's load took longer than waitFor, and with WhenDown::fail the store's error. A loader
  /// that asks, on its own thread, for the key that it loads gets a std::logic_error. Blocks for the loader,
  /// or for waitFor, plus a few requests to the stores.
  std::optional<std::string> get(std::string_view key);

  /// Forgets the value: call it when what the loader reads has been changed and committed. Waits for a load
  /// that began before, and does not keep its value, so that no get() that begins later, in any process that
  /// reaches the stores, is served a value from before the change. Throws a store's error or LockTimeout;
  /// then the old value may be served until its time is up. Blocks for a load that is under way, at most
  /// loadFor and lockTtl.
  void invalidate(std::string_view key);

 private:
  class Impl;
  std::shared_ptr<Impl> impl() const;

  std::shared_ptr<Impl> impl_;
};

}  // namespace lockkeeper

#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/cached_loader.h"
#include "store/store_health.h"

namespace lockkeeper::detail {

/// What a CachedLoader keeps in its store: a fresh value as KEY:fresh, which ends with its freshness, and
/// where stale ones are wanted a copy as KEY:stale, which ends later. So the store's clock alone decides, and
/// a hit costs one request. Thread-safe.
class CachedValues {
 public:
  using Value = std::optional<std::string>;

  struct Entry {
    std::string_view key;  ///< The caller's.
    std::string full;      ///< With the namespace: also the lock's name.
    std::string fresh;
    std::string stale;
    Instant began{};  ///< When the caller came.
  };

  /// What the store has of an entry.
  struct Found {
    bool there = false;
    Value value{};  ///< Empty although there: the loader had none.
    std::exception_ptr failure{};
  };

  /// The options are checked ones, and outlive this object.
  CachedValues(std::shared_ptr<ValueStore> store, const CacheOptions& options, Environment environment);

  /// Throws std::invalid_argument for a key that does not fit.
  Entry entryOf(std::string_view key) const;

  /// The fresh value. Asks the store, unless it is known to be down; reports its failures.
  Found readFresh(const Entry& entry) { return read(entry, entry.fresh); }
  /// A value that may be stale; empty also when the store fails.
  Value readStale(const Entry& entry);

  /// Stores what was loaded under `lock`, since `began`, for as long as it is not too old. A copy that cannot
  /// be stored, to be served stale later, is only told. Throws LockLost when somebody else may have stored a
  /// fresher value, and the store's errors.
  void store(const Entry& entry, const Lock& lock, const Value& value, Instant began);

  void erase(const Entry& entry);

  /// Tells the listener what has happened to the entry.
  void tell(EventKind kind, const Entry& entry, std::string_view text = {}) const;

 private:
  Found read(const Entry& entry, const std::string& name);
  bool put(const std::string& name, const std::string& stored, Instant until, Instant deadline);
  void storeCopy(const Entry& entry, const Lock& lock, const Value& value, const std::string& stored,
                 Instant until);
  Instant whileHeld(const Lock& lock, int parts = 1) const;
  std::chrono::milliseconds jittered() const;
  Instant now() const noexcept { return environment_.clock->now(); }
  Instant soon() const noexcept { return now() + options_.operationTimeout; }

  const std::shared_ptr<ValueStore> store_;
  const CacheOptions& options_;
  const Environment environment_;
  std::deque<StoreHealth> health_;  // of each part
};

}  // namespace lockkeeper::detail

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/export.h"
#include "lockkeeper/lock.h"

namespace lockkeeper {

/// Locks on several keys that were taken together (LockManager::lockAll()), as one: when one of them is lost,
/// all are lost. Those that are not go on being renewed until the set is released, so that nobody takes them
/// while the holder stops its work. Default-constructed or moved from, it is as after release(). Movable, not
/// copyable; threads as with Lock.
class LOCKKEEPER_CORE_EXPORT LockSet {
 public:
  LockSet() noexcept;
  LockSet(LockSet&&) noexcept;
  /// Lets go of what it held before, as the destructor does.
  LockSet& operator=(LockSet&&) noexcept;

  /// Releases, unless released already, and leaves the outcomes to the manager, as the destructor of Lock
  /// does. Blocks like that of one Lock, for all of them together. Never throws.
  ~LockSet();

  /// True while all are valid: work under them may go on. Local, no I/O. Once false it stays false.
  [[nodiscard]] bool valid() const noexcept;
  /// valid().
  explicit operator bool() const noexcept { return valid(); }

  /// How long valid() stays true if no renewal succeeds any more; 0 when it is false.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

  /// Released, lost when one is lost, suspect when one is suspect, else held. Local, no I/O.
  [[nodiscard]] LockState state() const noexcept;

  /// Fires when the first of them is lost, as Lock::lost() does.
  [[nodiscard]] std::stop_token lost() const noexcept;

  /// That of the lock on `key`, given as the caller of lockAll() gave it; empty when the driver promises
  /// none. Throws std::invalid_argument for a key that is not in the set.
  [[nodiscard]] std::optional<Fence> fence(std::string_view key) const;

  /// The locks, each key once, in the order in which they were taken; as long as the set lives, or what it
  /// was moved to. None in a default-constructed set.
  [[nodiscard]] std::span<const Lock> locks() const noexcept;

  /// Extends all leases, one after the other, as Lock::renew() does. Throws what that throws, for the first
  /// one that was not renewed; those after it are as they were.
  void renew();

  /// Frees all keys, the last one first, and waits for the outcomes, for one operationTimeout plus one I/O
  /// timeout altogether: what the store has not confirmed by then is `unavailable`, and the manager goes on
  /// with it. Returns the worst that was found: notOwner, unknown, unavailable, released, notHeld. Never
  /// throws.
  ReleaseResult release() noexcept;

 private:
  friend class LockManager;
  class State;
  explicit LockSet(std::unique_ptr<State> state) noexcept;
  void letGo() noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace lockkeeper

#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "inspect/held_keys.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/internal/lock_observer.h"

namespace lockkeeper::cli {

/// A key that is held, or a share of it, and what is shown besides.
struct WatchedKey {
  std::string name;  ///< Without the namespace.
  SeenGrant grant;
  std::optional<std::size_t> waiting{};  ///< Empty: the store does not tell.
  std::string firstWaiter{};             ///< Its label.
  std::optional<Instant> waitsSince{};   ///< Of the first one; empty: nobody waits, or it is not known.
};

/// What a look has found.
struct Seen {
  struct Change {
    LockObserver::Kind kind;
    WatchedKey key;
    bool expired = false;  ///< As LockObserver::Change::expired.
  };
  struct Loss {
    Instant at;
    std::string key;
    Holder holder;  ///< Whose lease ran out.
    std::chrono::milliseconds held;
  };

  std::vector<Change> changes;
  std::vector<WatchedKey> held;
  std::deque<Loss> losses;  ///< Of the last minutes, the latest first.
};

/// What shows it.
class Display {
 public:
  virtual ~Display() = default;

  virtual void changed(const Seen& seen) = 0;
  /// The store could not be asked.
  virtual void failed(const std::string& why) = 0;
};

/// What is seen of the held keys by looking again and again.
class Watched {
 public:
  static constexpr std::chrono::minutes lossesShown{10};

  explicit Watched(const HeldKeys& keys) : keys_(keys) {}

  void compare(LockListing listing);
  const Seen& seen() const { return seen_; }

 private:
  WatchedKey keyOf(const SeenGrant& grant, const LockListing& listing, Instant now) const;

  const HeldKeys& keys_;
  LockObserver observer_;
  bool first_ = true;
  Seen seen_;
};

}  // namespace lockkeeper::cli

#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/export.h"

// What some stores can do and others cannot. A driver that can also derives from the interface; callers ask
// with dynamic_cast. No driver has a method that it cannot honour.

namespace lockkeeper {

/// The store queues waiting claims itself, so that waiting costs no polling.
class LOCKKEEPER_CORE_EXPORT Waitable {
 public:
  virtual ~Waitable() = default;

  /// Like LockDriver::acquire, but waits in the store's queue: until granted, until `waitUntil` (then Busy)
  /// or until `stop` is triggered (then Busy). `request.deadline` bounds the I/O around the wait.
  virtual AcquireResult acquireWaiting(const AcquireRequest& request, Instant waitUntil,
                                       std::stop_token stop) = 0;
};

/// The store can list its locks.
class LOCKKEEPER_CORE_EXPORT Browsable {
 public:
  virtual ~Browsable() = default;

  /// Calls `visit` once for each key that was held during the whole listing and starts with `prefix`; keys
  /// that come or go meanwhile may be seen or not. Order is the store's. `visit` returns false to end the
  /// listing.
  virtual void list(std::string_view prefix,
                    const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                    Instant deadline) = 0;

  /// Likewise, and also the keys that acquire() would find busy although no client of this scheme holds them:
  /// locks of other clients, or data that looks like one. Their owner is empty.
  virtual void listBusy(std::string_view prefix,
                        const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                        Instant deadline) {
    list(prefix, visit, deadline);
  }
};

/// The store lets an operator take a lock from its holder.
class LOCKKEEPER_CORE_EXPORT Breakable {
 public:
  virtual ~Breakable() = default;

  /// Frees the key whoever holds it; false when it was free. With `shown`, as holder() told it: only while
  /// that same grant holds the key; false when it does not. The old holder finds out at its next renewal, and
  /// only a fenced resource refuses it until then: for operators, not for programs.
  virtual bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) = 0;
};

/// The store is several nodes that vote: a key is held by the claim that a quorum of them keeps.
class LOCKKEEPER_CORE_EXPORT Quorate {
 public:
  virtual ~Quorate() = default;

  /// What one node says about a key.
  struct View {
    std::string node;              ///< Its address, without a secret.
    std::optional<Holder> holder;  ///< Empty: the node does not keep the key.
    std::string fault;             ///< Why the node could not be asked; empty when it has answered.
  };

  /// What each node says about `key`, in the order of the store's URI. Faults of nodes are values.
  virtual std::vector<View> views(std::string_view key, Instant deadline) = 0;
};

/// A small text that somebody has pinned to a store's board.
struct Notice {
  std::string name;
  std::string text;
  std::chrono::milliseconds age{};  ///< Since it was pinned, on the store's clock.
};

/// The store keeps small texts beside its locks, by which processes agree on something. A board comes to be
/// with its first notice. Boards and names are 1 to 128 printable characters, texts have up to 64 KiB. Each
/// call is one step in the store; errors and deadlines are as for LockDriver. Thread-safe.
class LOCKKEEPER_CORE_EXPORT Noticeboard {
 public:
  virtual ~Noticeboard() = default;

  /// Pins `text` under `name`, in place of what is there, and returns all notices, this one included. It
  /// disappears after `keep`; empty: never.
  virtual std::vector<Notice> pin(std::string_view board, std::string_view name, std::string_view text,
                                  std::optional<std::chrono::milliseconds> keep, Instant deadline) = 0;

  /// All notices, in no order.
  virtual std::vector<Notice> notices(std::string_view board, Instant deadline) = 0;

  /// Pins `text` for ever if what is there now is `expected` (empty: nothing is). False when it is not.
  virtual bool replace(std::string_view board, std::string_view name,
                       const std::optional<std::string>& expected, std::string_view text,
                       Instant deadline) = 0;

  /// Takes the notice down; nothing happens when it is not there.
  virtual void unpin(std::string_view board, std::string_view name, Instant deadline) = 0;
};

}  // namespace lockkeeper

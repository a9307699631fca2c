#pragma once

#include <functional>
#include <stop_token>
#include <string_view>

#include "lockkeeper/driver.h"

// What some stores can do and others cannot. A driver that can also derives from the interface; callers ask
// with dynamic_cast. No driver has a method that it cannot honour.

namespace lockkeeper {

/// The store queues waiting claims itself, so that waiting costs no polling.
class Waitable {
 public:
  virtual ~Waitable() = default;

  /// Like LockDriver::acquire, but waits in the store's queue: until granted, until `waitUntil` (then Busy)
  /// or until `stop` is triggered (then Busy). `request.deadline` bounds the I/O around the wait.
  virtual AcquireResult acquireWaiting(const AcquireRequest& request, Instant waitUntil,
                                       std::stop_token stop) = 0;
};

/// The store can list its locks.
class Browsable {
 public:
  virtual ~Browsable() = default;

  /// Calls `visit` once for each key that was held during the whole listing and starts with `prefix`; keys
  /// that come or go meanwhile may be seen or not. Order is the store's. `visit` returns false to end the
  /// listing.
  virtual void list(std::string_view prefix,
                    const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                    Instant deadline) = 0;
};

/// The store lets an operator take a lock from its holder.
class Breakable {
 public:
  virtual ~Breakable() = default;

  /// Frees the key whoever holds it; false when it was free. The old holder finds out at its next renewal,
  /// and only a fenced resource refuses it until then: for operators, not for programs.
  virtual bool breakLock(std::string_view key, Instant deadline) = 0;
};

}  // namespace lockkeeper

#pragma once

#include <stop_token>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper {

/// The store queues waiting claims itself, so that waiting costs no polling.
class LOCKKEEPER_CORE_EXPORT Waitable {
 public:
  virtual ~Waitable() = default;

  /// Like LockDriver::acquire(), but waits in the store's queue until the claim is granted. Returns Busy
  /// after `waitFor`, when `stop` fires, or at once if the queue has no place: then core polls. When it
  /// returns, at most a quarter of the lease's ttl has passed. `request.deadline` bounds what comes before
  /// the wait, and one I/O timeout what comes after it. After OutcomeUnknown, the claim may still be in the
  /// queue: core calls again with the same token, which finds its place, or releases it.
  [[nodiscard]] virtual AcquireResult acquireWaiting(const AcquireRequest& request,
                                                     std::chrono::nanoseconds waitFor,
                                                     std::stop_token stop) = 0;

  /// For drivers that reserve fences for several local holders: whether the store has reported since then
  /// that somebody began to wait. Core then stops handing keys on inside the process, so that this waiter
  /// does not starve. A hint, which may be late or get lost. Does not block. Thread-safe.
  virtual bool waitersReportedSince(Instant /*since*/) noexcept { return false; }
};

}  // namespace lockkeeper

#pragma once

#include <stop_token>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper {

/// The store queues waiting claims itself, so that waiting costs no polling.
class LOCKKEEPER_CORE_EXPORT Waitable {
 public:
  virtual ~Waitable() = default;

  /// Like LockDriver::acquire(), but waits in the store's queue until the claim is granted, for `waitFor`, or
  /// until `stop`; then Busy. Busy at once when there is no place in the queue: then core polls. The lease is
  /// no older than a quarter of its ttl when the call returns. `request.deadline` bounds what comes before
  /// the wait, one I/O timeout what comes after it.
  ///
  /// After OutcomeUnknown the claim may still be in the queue: core calls again with the same token, which
  /// finds its place, or releases it. After WithdrawalUnknown it only releases it.
  [[nodiscard]] virtual AcquireResult acquireWaiting(const AcquireRequest& request,
                                                     std::chrono::nanoseconds waitFor,
                                                     std::stop_token stop) = 0;

  /// For drivers that reserve fences for several local holders: whether the store has told since then that
  /// somebody began to wait. Core then hands no key on inside the process, lest that one starve. A hint,
  /// which may be late or get lost. Does not block. Thread-safe.
  virtual bool waitersReportedSince(Instant /*since*/) noexcept { return false; }
};

}  // namespace lockkeeper

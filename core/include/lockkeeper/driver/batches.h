#pragma once

#include <vector>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper {

/// The store grants several keys in one step. Without it, core claims key by key.
class LOCKKEEPER_CORE_EXPORT Batchable {
 public:
  virtual ~Batchable() = default;

  /// Claims up to 1,000 different keys, sorted by their bytes, with one deadline. Ends at the first key that
  /// is busy (but see AcquireRequest::waits) or whose part of the store is unavailable. Returns a result for
  /// each key that was tried: all are Granted except perhaps the last one. Throws as LockDriver::acquire(),
  /// for all keys: after any error other than StoreUnavailable, each may have been granted.
  [[nodiscard]] virtual std::vector<AcquireResult> acquireInOrder(
      std::span<const AcquireRequest> requests) = 0;
};

/// The store frees several keys in one step.
class LOCKKEEPER_CORE_EXPORT BatchReleasing {
 public:
  virtual ~BatchReleasing() = default;

  /// As LockDriver::release() for each of the claims: up to 1,000, without shares, of different keys. Throws
  /// for all of them: after any error other than StoreUnavailable, each may have been released.
  [[nodiscard]] virtual std::vector<ReleaseOutcome> releaseAll(std::span<const Claim> claims,
                                                               Instant deadline) = 0;
};

/// Gets the outcome of a posted release, in one call. Must not block, and must not call a driver.
class LOCKKEEPER_CORE_EXPORT PostListener {
 public:
  virtual ~PostListener() = default;

  /// The store's answer.
  virtual void answered(ReleaseOutcome outcome) noexcept = 0;
  /// No answer came, within the I/O timeout at the latest; the reason is as release() would throw it.
  virtual void failed(ErrorCode code, std::string_view text) noexcept = 0;
};

/// The driver can send a release without waiting for the reply.
class LOCKKEEPER_CORE_EXPORT Postable {
 public:
  virtual ~Postable() = default;

  /// Sends the release so that the store gets it before any later request of this driver for the key, and
  /// does not wait. Returns false if it was not sent, because there is no connection, it is not known whether
  /// this store keeps that order, or 1,024 releases are under way; core then calls release().
  ///
  /// `listener` may be null. It is called outside the driver's mutexes, on a thread that waits for another
  /// reply or in awaitPosted(), perhaps before this call returns; not if the driver is destroyed first.
  [[nodiscard]] virtual bool postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) = 0;

  /// Returns when the outcomes of all releases that were posted before have been read, or at `deadline`. Core
  /// calls it soon after a post, unless other calls have read the reply by then.
  virtual void awaitPosted(Instant deadline) noexcept = 0;
};

}  // namespace lockkeeper

#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/base/random.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/backoff.h"

namespace lockkeeper::detail {

/// Why a store could not be asked.
struct StoreFailure {
  ErrorCode code;
  std::string text;
};

/// Whether the store answers. While it does not, one caller now and then tries it, and the others need not
/// wait for its timeout. An error that is an answer (a key of the wrong type, a refused right) is no outage.
/// Thread-safe.
class StoreHealth {
 public:
  /// `longestTry` is how long one try may take.
  explicit StoreHealth(std::chrono::nanoseconds longestTry);

  /// Whether to ask the store. While it is down: true for one caller when the next try is due.
  bool mayTry(Instant now);

  /// Whether an error says that the store did not answer.
  static constexpr bool isOutage(ErrorCode code) noexcept {
    return code == ErrorCode::storeUnavailable || code == ErrorCode::outcomeUnknown;
  }

  void succeeded();
  /// A call that was `started` then has failed.
  void failed(const Error& error, Instant started, Instant now, Random& random);

  bool isDown() const noexcept { return down_.load(std::memory_order_acquire); }
  StoreFailure lastFailure() const;
  Instant nextTry() const;

 private:
  const std::chrono::nanoseconds longestTry_;
  std::atomic<bool> down_ = false;
  mutable std::mutex mutex_;
  Backoff backoff_;
  Instant failedAt_ = Instant::min();
  Instant nextTry_{};
  StoreFailure lastFailure_{ErrorCode::storeUnavailable, {}};
};

}  // namespace lockkeeper::detail

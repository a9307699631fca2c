#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/export.h"
#include "lockkeeper/rate_policy.h"

namespace lockkeeper {

namespace detail {
class RateEngine;
}

/// How a limiter works. Its constructor refuses values out of range.
struct RateLimiterOptions {
  /// A prefix of each key, so that applications can share a store. [A-Za-z0-9_.-]{0,64}; "" for none.
  std::string keyNamespace{};

  /// How long one request to the store may take: 1 ms to 1 h. After that, the policy's outage setting
  /// decides.
  std::chrono::milliseconds operationTimeout{500};

  Environment environment{};
};

/// How long takeOrWait() may wait.
struct RateWait {
  std::chrono::milliseconds waitFor{0};  ///< 0 to 24 h.
  std::stop_token stop{};                ///< Ends the wait early.
};

/// One of several limits that a call must keep. RateLimiter::take() writes `decision`.
struct RateTake {
  std::string_view key;
  const RatePolicy* policy = nullptr;  ///< Must be set.
  std::int64_t cost = 1;
  Decision decision{};  ///< What this limit alone says. Nothing was charged unless all allow.
};

/// A place in a queue that lets callers go at a constant rate, or no place: a RateSlot that was
/// default-constructed or moved from behaves like a refused one. Movable, not copyable; use it on one thread
/// at a time. May outlive the limiter. Destroying it does nothing: the slot stays taken, and nobody else goes
/// at that time.
class LOCKKEEPER_CORE_EXPORT RateSlot {
 public:
  /// A refused slot.
  RateSlot() = default;
  /// Leaves `other` refused.
  /// @{
  RateSlot(RateSlot&& other) noexcept : state_(std::exchange(other.state_, {})) {}
  RateSlot& operator=(RateSlot&& other) noexcept {
    state_ = std::exchange(other.state_, {});
    return *this;
  }
  /// @}

  /// What the limit decided: refused when the queue was full, and then there is nothing to wait for.
  const Decision& decision() const noexcept { return state_.decision; }
  /// Whether there is a slot to wait for.
  explicit operator bool() const noexcept { return state_.decision.allowed; }

  /// When the holder may go, on the limiter's clock: never before the store's slot.
  Instant at() const noexcept { return state_.at; }

  /// Blocks until at(). Returns false when refused, or when `stop` or RateLimiter::stop() was triggered
  /// first: then call giveBack().
  [[nodiscard]] bool wait(std::stop_token stop = {});

  /// Frees a slot that is not used. Returns true when the next caller gets it, and false when others have
  /// queued behind it: they keep their slots, and this one stays empty. Throws RateDriver's errors. Blocks
  /// like RateLimiter::refund().
  bool giveBack();

 private:
  friend class detail::RateEngine;

  struct State {
    std::shared_ptr<detail::RateEngine> engine{};
    Decision decision{};
    Instant at{};
    std::string key{};  // full
    RateLaw law{};
    std::int64_t cost = 0;  // 0: nothing to give back
    RateTime slot{};
  };

  explicit RateSlot(State state) noexcept : state_(std::move(state)) {}

  State state_;
};

/// Limits how often things happen, for all processes that use the same store. Thread-safe; make one for each
/// store and share it.
///
/// A key is 1 to 512 bytes. A cost is 0, which is allowed and charges nothing, to RatePolicy::limit(); a
/// higher one could never be allowed. Bad arguments are a std::invalid_argument, and nothing is charged.
///
/// Each call blocks for operationTimeout plus one I/O timeout at most, and takeOrWait() for its waitFor in
/// addition. While the store is down, only one caller now and then waits that long, to see whether it is
/// back.
///
/// Its RateSlots may outlive it. To end a limiter in which other threads may be waiting, call stop(), join
/// these threads, then destroy it: moving or destroying it while another thread is in one of its functions is
/// a data race. One that was moved from throws std::logic_error.
///
/// After fork() the child's copy throws ForkedError: make a new one.
class LOCKKEEPER_CORE_EXPORT RateLimiter {
 public:
  /// Throws std::invalid_argument for options out of range.
  explicit RateLimiter(std::shared_ptr<RateDriver> driver, RateLimiterOptions options = {});
  RateLimiter(RateLimiter&&) noexcept;
  RateLimiter& operator=(RateLimiter&&) noexcept;

  /// Does not ask the store. The listener may call it during one of the limiter's calls, which then
  /// continues.
  ~RateLimiter();

  /// Charges `cost` if it fits. A leakyQueue allows only a call that need not wait.
  [[nodiscard]] Decision take(std::string_view key, const RatePolicy& policy, std::int64_t cost = 1);

  /// Charges all of them or, when one refuses, none. At most 16, and no key twice under one policy. The
  /// decision is that of the limit that refuses for the longest time or, when all allow, of the one that has
  /// the least remaining.
  [[nodiscard]] Decision take(std::span<RateTake> takes);
  /// The same, without the decisions of the single limits.
  [[nodiscard]] Decision take(std::initializer_list<RateTake> takes);

  /// Like take(), but waits if that can help: it returns at once when the wait would be longer than allowed.
  /// A leakyQueue serves callers in the order in which they came; other kinds promise no order.
  [[nodiscard]] Decision takeOrWait(std::string_view key, const RatePolicy& policy, const RateWait& wait,
                                    std::int64_t cost = 1);

  /// Takes the next free slot of a leakyQueue, however far away it is. Refused when the queue is full.
  [[nodiscard]] RateSlot reserve(std::string_view key, const RatePolicy& policy, std::int64_t cost = 1);

  /// What take() would say, without charging. Throws RateDriver's errors.
  [[nodiscard]] Decision peek(std::string_view key, const RatePolicy& policy, std::int64_t cost = 1);

  /// Gives back what was taken and not used, at most until the bucket is full. Returns false when nothing was
  /// taken. Not for queues: see RateSlot::giveBack(). Throws RateDriver's errors.
  bool refund(std::string_view key, const RatePolicy& policy, std::int64_t cost = 1);

  /// Forgets all use of the key. Throws RateDriver's errors.
  void reset(std::string_view key, const RatePolicy& policy);

  /// Ends all present and later waits of takeOrWait() and RateSlot::wait(): they return at once, refused.
  /// Calls that do not wait are not affected. Does not block. Cannot be undone.
  void stop() noexcept;

  /// RateLimiterOptions::environment. Valid as long as the limiter.
  [[nodiscard]] const Environment& environment() const;

 private:
  std::shared_ptr<detail::RateEngine> engine() const;

  std::shared_ptr<detail::RateEngine> engine_;
};

}  // namespace lockkeeper

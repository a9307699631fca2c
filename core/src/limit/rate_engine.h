#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "limit/rate_key.h"
#include "limit/rate_records.h"
#include "limit/rate_store.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/rate_limiter.h"

namespace lockkeeper::detail {

/// What a RateLimiter and its slots share. Who answers a question, in this order: what is known to be
/// refused, the store, the outage setting. Thread-safe.
class RateEngine : public std::enable_shared_from_this<RateEngine> {
 public:
  RateEngine(std::shared_ptr<RateDriver> driver, RateLimiterOptions options);
  RateEngine(const RateEngine&) = delete;
  ~RateEngine();

  /// `waitsSince`: when takeOrWait() was called, which asks.
  Decision take(std::string_view key, const RatePolicy& policy, std::int64_t cost,
                std::optional<Instant> waitsSince = {});
  Decision take(std::span<RateTake> takes);
  Decision takeOrWait(std::string_view key, const RatePolicy& policy, const RateWait& wait,
                      std::int64_t cost);
  /// The next slot of a queue.
  RateSlot reserve(std::string_view key, const RatePolicy& policy, std::int64_t cost);
  Decision peek(std::string_view key, const RatePolicy& policy, std::int64_t cost);
  bool refund(std::string_view key, const RatePolicy& policy, std::int64_t cost);
  void reset(std::string_view key, const RatePolicy& policy);

  bool refund(const RateRefund& refund);

  /// Blocks until `until`; false when `stop` or stop() was triggered first.
  bool pauseUntil(Instant until, const std::stop_token& stop) const;
  void stop() noexcept;

  const Environment& environment() const noexcept { return options_.environment; }

 private:
  /// The next slot, unless it is farther than `longestWait`. With `stop`, also waits for it; when that is
  /// stopped, it counts as refused, and is still to be given back.
  RateSlot reserve(std::string_view key, const RatePolicy& policy, std::int64_t cost,
                   std::chrono::microseconds longestWait, Instant calledAt, const std::stop_token* stop);
  bool inherited() const noexcept;
  void check(std::string_view key, const RatePolicy& policy, std::int64_t cost) const;
  RateKey fullKey(const RatePolicy& policy, std::string_view key) const;
  RateStore::Failure decide(std::span<RateCharge> charges, RateStore::Policies policies);
  Instant startOfEvent() const;
  void report(const Decision& decision, std::string_view key, Instant began,
              std::optional<std::chrono::nanoseconds> wait = {}) const;

  const ForkGuard forkGuard_;
  const RateLimiterOptions options_;
  const std::shared_ptr<RateDriver> driver_;
  const std::string name_;  // of the store, in events
  std::stop_source stop_;
  std::unique_ptr<RateStore> store_;
  std::unique_ptr<RateRecords> records_;  // null where asking costs no round trip
};

}  // namespace lockkeeper::detail

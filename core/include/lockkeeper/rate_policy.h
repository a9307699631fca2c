#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/error.h"
#include "lockkeeper/export.h"
#include "lockkeeper/limit/rate_law.h"

namespace lockkeeper {

/// `count` units in every `period`.
struct LOCKKEEPER_CORE_EXPORT Rate {
  std::int64_t count = 1;
  std::chrono::microseconds period{std::chrono::seconds{1}};

  /// Reads "2/s", "100/min", "1/day" or "5/30s": the units are ms, s, min (m), h and day (d). Throws
  /// ConfigError that names the value and, as `what`, the setting it stood in.
  static Rate parse(std::string_view what, std::string_view text);
};

/// What is answered while the store cannot be asked.
enum class Outage {
  closed,  ///< Everything is refused.
  open,    ///< Everything is allowed.
  local,   ///< This process enforces its share of the limit (RatePolicyOptions::processes), and charges the
           ///< store for it when the store is back.
};

/// What a limit allows. Values outside their range are refused by RatePolicy().
struct RatePolicyOptions {
  RateKind kind = RateKind::tokenBucket;
  Rate rate{};  ///< count: 1 to 10^9; period: 1 ms to 366 days.

  /// What a bucket or queue holds: 0 for rate.count, else 1 to 10^9. Windows have none: their limit is the
  /// rate's count (of a sliding window at most 1000, since it keeps each admission).
  std::int64_t burst = 0;

  Outage outage = Outage::closed;

  /// How many processes share the limit, for Outage::local: each then has this part of it. 1 to 10,000, at
  /// most the limit.
  std::int64_t processes = 1;
};

/// One named limit, checked. A value: make it at start-up and give it to RateLimiter with each key. Keys that
/// are limited by different policies are different keys, so that a policy can be changed without a reset: see
/// docs/rate-limiting.md. Safe for threads that only read it.
class LOCKKEEPER_CORE_EXPORT RatePolicy {
 public:
  /// Throws std::invalid_argument that names the policy, the first value out of range and what is allowed:
  /// also where numbers would grow beyond 2^53 (a bucket may take at most 100 years to fill). `name` is 1 to
  /// 64 characters of [A-Za-z0-9_.-].
  explicit RatePolicy(std::string name, const RatePolicyOptions& options = {});

  /// From configuration values: kind, rate, burst, outage and processes, as in `rate = 100/min`, `burst =
  /// 10`, `kind = leaky-queue`, `outage = local`. Only `rate` is needed. Throws ConfigError also for a
  /// setting that is unknown.
  static RatePolicy parse(std::string name, const std::map<std::string, std::string>& settings);

  /// As given to the constructor.
  const std::string& name() const noexcept { return name_; }
  /// As given to the constructor.
  const RatePolicyOptions& options() const noexcept { return options_; }
  /// What a full bucket or a window holds: the most that one call may cost.
  std::int64_t limit() const noexcept { return law_.limit; }

  /// The policy as drivers take it.
  const RateLaw& law() const noexcept { return law_; }
  /// This process's part of the law, for Outage::local.
  const RateLaw& localLaw() const noexcept { return localLaw_; }

 private:
  std::string name_;
  RatePolicyOptions options_;
  RateLaw law_;
  RateLaw localLaw_;
};

/// What came of asking a limit. Lengths of time count from the answer, are rounded up, and are exact as long
/// as nobody refunds or resets.
struct Decision {
  bool allowed = false;

  /// What is left for others, under `policy`, after this call.
  std::int64_t remaining = 0;

  /// When the same call may be allowed; 0 when this one was.
  std::chrono::microseconds retryAfter{0};

  /// When nothing is used any more, if nobody asks again.
  std::chrono::microseconds resetAfter{0};

  /// The name of the policy that refused; when allowed, of the one with the least remaining.
  std::string policy{};

  /// Set when the store could not be asked: why, and then `allowed` is what the policy's outage setting says.
  /// Empty when the store, or what is known of it, has decided.
  std::optional<ErrorCode> outage{};
  /// What the store or the way to it said of it, for logs; no secret is in it.
  std::string outageReason{};

  /// `allowed`.
  explicit operator bool() const noexcept { return allowed; }
};

}  // namespace lockkeeper

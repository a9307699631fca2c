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
  /// ConfigError that names the value and its setting, `what`.
  static Rate parse(std::string_view what, std::string_view text);
};

/// What a limit decides while the store cannot be asked.
enum class Outage {
  closed,  ///< Everything is refused.
  open,    ///< Everything is allowed.
  local,   ///< This process enforces its share of the limit (RatePolicyOptions::processes), and charges the
           ///< store for it when the store is back.
};

/// What a limit allows. RatePolicy() refuses values out of range.
struct RatePolicyOptions {
  RateKind kind = RateKind::tokenBucket;
  Rate rate{};  ///< count: 1 to 10^9; period: 1 ms to 366 days.

  /// The capacity of a bucket or queue: 1 to 10^9, or 0 for rate.count. Windows have none: their limit is
  /// rate.count, which is at most 1000 for a sliding window, because it keeps each admission.
  std::int64_t burst = 0;

  Outage outage = Outage::closed;

  /// Among how many processes Outage::local divides the limit: 1 to 10,000, at most the limit.
  std::int64_t processes = 1;
};

/// One named limit, already checked. Make it at start-up and pass it to RateLimiter with each key. A key has
/// a separate count under each policy's name; a policy that is changed continues with the counts of its name
/// (docs/rate-limiting.md). A value; any number of threads may read it.
class LOCKKEEPER_CORE_EXPORT RatePolicy {
 public:
  /// `name` is 1 to 64 characters of [A-Za-z0-9_.-]. Throws std::invalid_argument that names the policy, the
  /// first value out of range and what is allowed; also if numbers would exceed 2^53 (a bucket may take at
  /// most 100 years to fill).
  explicit RatePolicy(std::string name, const RatePolicyOptions& options = {});

  /// From configuration values: kind, rate, burst, outage and processes, as in `rate = 100/min`, `burst =
  /// 10`, `kind = leaky-queue`, `outage = local`. Only `rate` is required. Throws ConfigError, also for an
  /// unknown setting.
  static RatePolicy parse(std::string name, const std::map<std::string, std::string>& settings);

  /// As given to the constructor.
  const std::string& name() const noexcept { return name_; }
  /// As given to the constructor.
  const RatePolicyOptions& options() const noexcept { return options_; }
  /// The capacity of the bucket or window, which is the highest cost of one call.
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

/// The answer of a limit. Durations count from the answer, are rounded up, and are exact as long as nobody
/// refunds or resets.
struct Decision {
  bool allowed = false;

  /// What is left under `policy` after this call.
  std::int64_t remaining = 0;

  /// How long until the same call may be allowed; 0 when this one was.
  std::chrono::microseconds retryAfter{0};

  /// How long until the whole limit is free again, if nobody asks meanwhile.
  std::chrono::microseconds resetAfter{0};

  /// The name of the policy that refused or, when all allowed, of the one with the least remaining.
  std::string policy{};

  /// Set when the store could not be asked, and says why; `allowed` is then what the policy's outage setting
  /// says. Empty when the decision comes from the store, or from what is known of its state.
  std::optional<ErrorCode> outage{};
  /// The message of that error, for logs, without secrets.
  std::string outageReason{};

  /// `allowed`.
  explicit operator bool() const noexcept { return allowed; }
};

}  // namespace lockkeeper

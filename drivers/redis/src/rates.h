#pragma once

#include <span>
#include <string_view>

#include "lockkeeper/rate_driver.h"
#include "redis_store.h"

namespace lockkeeper::redis {

/// Rate limits on the connection that the driver's locks use too. The scripts say how a key is kept.
/// Thread-safe.
class Rates {
 public:
  explicit Rates(RedisStore& store) : store_(store) {}

  /// One round trip, whatever the number of charges.
  void decide(std::span<RateCharge> charges, std::string_view mode, Instant deadline);
  bool refund(const RateRefund& refund, Instant deadline);
  void reset(std::string_view key, RateKind kind, Instant deadline);

 private:
  const Reply& answer(const Request& request);

  RedisStore& store_;
};

}  // namespace lockkeeper::redis

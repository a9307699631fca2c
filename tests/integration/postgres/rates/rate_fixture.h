#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "kept_rows.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/rate_policy.h"
#include "postgres_fixture.h"

namespace lockkeeper::test {

/// Its numbers are 0: the first hundred charges delete no rows.
class Zeros final : public Random {
 public:
  void fill(std::span<std::byte> out) override { std::ranges::fill(out, std::byte{0}); }
};

/// Limits that fill again in a year.
class PostgresRates : public PostgresTest {
 protected:
  static std::shared_ptr<RateDriver> limitsOf(const std::shared_ptr<LockDriver>& driver) {
    return capability<RateDriver>(driver);
  }
  static RatePolicy policyOf(RateKind kind, std::int64_t limit) {
    return RatePolicy("p", {.kind = kind, .rate = {limit, std::chrono::hours{366 * 24}}});
  }
  static std::int64_t take(RateDriver& limits, const std::string& key, const RatePolicy& policy,
                           Instant deadline = soon()) {
    RateCharge charge{.key = key, .law = &policy.law()};
    limits.take({&charge, 1}, deadline);
    return charge.outcome.granted;
  }
  std::int64_t remaining(const std::string& which, const RatePolicy& policy) const {
    RateCharge charge{.key = which, .law = &policy.law(), .cost = 0};
    limits->peek({&charge, 1}, soon());
    return charge.outcome.remaining;
  }
  bool hasRow(const std::string& which) const {
    return store.server.ask("SELECT count(*) FROM lockkeeper_rates WHERE rate_key = '" + which + "'") == "1";
  }
  KeptRows keep(const std::string& which) const {
    return KeptRows(store.server, "SELECT FROM lockkeeper_rates WHERE rate_key = '" + which + "' FOR UPDATE");
  }

  const std::string key = Claimant{}.key;
  const RatePolicy bucket = policyOf(RateKind::tokenBucket, 100);
  const std::shared_ptr<RateDriver> limits = limitsOf(store.direct);
};

}  // namespace lockkeeper::test

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "limit/yielder.h"
#include "lockkeeper/driver/rate_driver.h"

namespace lockkeeper::detail {

/// Asks the store once for all callers of this process who want the same of one key at the same moment. Those
/// who come while a question is under way wait; then the first of them asks for all, and what is granted goes
/// to them in the order in which they came. No thread of its own. Thread-safe.
class RateCombiner {
 public:
  RateCombiner(RateDriver& driver, std::shared_ptr<Clock> clock)
      : driver_(driver), clock_(std::move(clock)), yielder_(*clock_) {}

  /// As RateDriver::take() for one charge of one time, but asks for `ahead` more; how many of these were
  /// granted is added to `spare` of one of the callers. Throws what the driver throws.
  void take(RateCharge& charge, std::int64_t ahead, std::int64_t& spare, Instant deadline);

 private:
  struct Batch;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Shard {
    std::mutex mutex;
    // For each key with a question under way, those who want to ask next.
    std::unordered_map<std::string, std::deque<std::shared_ptr<Batch>>, Hash, std::equal_to<>> lines;
  };

  bool await(Batch& batch);
  void ask(Shard& shard, Batch& batch, std::int64_t ahead, Instant deadline);
  static void passOn(Shard& shard, std::string_view key);

  RateDriver& driver_;
  const std::shared_ptr<Clock> clock_;
  Yielder yielder_;
  std::array<Shard, 64> shards_;
};

}  // namespace lockkeeper::detail

#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/environment.h"

namespace lockkeeper::detail {

/// Units that the store has been charged for and that nobody has used yet. Those that lie idle go back to the
/// store, from a thread that starts with the first unit; all do when the stock is closed. Thread-safe.
class TokenStock {
 public:
  TokenStock(std::shared_ptr<RateDriver> driver, std::shared_ptr<Clock> clock,
             std::chrono::nanoseconds operationTimeout)
      : driver_(std::move(driver)), clock_(std::move(clock)), operationTimeout_(operationTimeout) {}

  /// Hands out one unit of the key and writes charge.outcome. False when there is none under this law.
  bool take(RateCharge& charge, Instant now);

  /// Puts in `units` that charge.outcome, an answer of the store, has left over.
  void add(const RateCharge& charge, std::int64_t units, std::chrono::nanoseconds idle, Instant now);

  /// The store has forgotten the key.
  void drop(std::string_view key);

  /// Gives everything back and ends the thread. Blocks for about one operation.
  void close();

 private:
  struct Shelf {
    RateLaw law;
    std::int64_t units = 0;
    std::int64_t remaining = 0;  // in the store, when it was last asked
    Instant resetAt{};           // likewise
    std::chrono::nanoseconds idle{};
    Instant idleAt{};
  };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Shelves = std::unordered_map<std::string, Shelf, Hash, std::equal_to<>>;

  void keep();
  std::vector<Shelves::node_type> takeIdle(Instant now);
  Instant nextIdle() const;
  void giveBack(const std::vector<Shelves::node_type>& shelves);

  const std::shared_ptr<RateDriver> driver_;
  const std::shared_ptr<Clock> clock_;
  const std::chrono::nanoseconds operationTimeout_;
  std::mutex mutex_;
  Shelves shelves_;
  bool closing_ = false;
  std::condition_variable wakeUp_;
  Instant sleepsUntil_ = Instant::min();
  std::thread keeper_;
};

}  // namespace lockkeeper::detail

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "limit/memory_rates.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/internal/string_map.h"

namespace lockkeeper::detail {

/// This process's part of the limits while the store is down, and what the store has to be charged for it
/// afterwards. Has room for a bounded number of keys that are in use: new ones beyond are refused.
/// Thread-safe.
class LocalLimits {
 public:
  explicit LocalLimits(std::shared_ptr<Clock> clock) : clock_(std::move(clock)), rates_(clock_, mostKeys) {}

  /// As RateDriver::take(), with the local laws; `laws` are those of the store, one for each charge.
  void take(std::span<RateCharge> charges, std::span<const RateLaw* const> laws);

  /// Whether something was used that the store was not charged for.
  bool hasUncharged() const noexcept { return hasUncharged_.load(std::memory_order_acquire); }

  /// Charges the store for what was used of `key` in the outage and has not run out since. Throws what the
  /// driver throws: the use stays uncharged when it did not get there, and is forgiven after an error of the
  /// key alone, or when the answer is lost, for which it may have been charged.
  void charge(RateDriver& driver, std::string_view key, Instant deadline);

  /// The same for the keys of `first`, and then for some others, unless another thread is at those. Begins
  /// none after half of the time.
  void chargeSome(RateDriver& driver, std::span<const RateCharge> first, Instant deadline);

  /// The key was reset: nothing is used of it.
  void forget(std::string_view key, RateKind kind);

 private:
  static constexpr std::size_t mostKeys = 65'536;  // in use
  static constexpr std::size_t firstSweep = 1024;

  struct Laws {
    RateLaw store;
    RateLaw local;
  };
  using Uncharged = StringMap<Laws>;

  std::int64_t usedOf(std::string_view key, const RateLaw& law);
  void sweep();
  Uncharged::node_type extract(std::string_view key);
  void putBack(Uncharged::node_type use);
  void charge(RateDriver& driver, const std::string& key, const Laws& laws, Instant deadline);

  const std::shared_ptr<Clock> clock_;
  MemoryRates rates_;
  std::mutex mutex_;
  Uncharged uncharged_;
  std::size_t sweepAt_ = firstSweep;  // keys
  std::atomic<bool> hasUncharged_ = false;
  std::mutex charging_;
};

}  // namespace lockkeeper::detail

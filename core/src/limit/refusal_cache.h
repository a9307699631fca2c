#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/driver/rate_driver.h"

namespace lockkeeper::detail {

/// What the store has refused, so that it need not be asked again before it can say yes. Holds a bounded
/// number of refusals: in a full place, the one that ends first makes room. Thread-safe.
class RefusalCache {
 public:
  /// Read before the store is asked; see add().
  using Generation = std::uint64_t;
  Generation generation() const noexcept { return generation_.load(std::memory_order_acquire); }

  /// Whether `charge` is known to be refused at `now`; then writes its outcome.
  bool find(RateCharge& charge, Instant now);

  /// Remembers charge.outcome, a refusal that was asked for at `sent` and received at `received`. Not when
  /// something was given back since `asked`: the store may have decided before that.
  void add(const RateCharge& charge, Instant sent, Instant received, Generation asked);

  /// The store has got something back for this key.
  void forget(std::string_view key);

 private:
  static constexpr std::size_t setCount = 4096;
  static constexpr std::size_t setSize = 4;

  struct Refusal {
    std::string key;
    RateLaw law;
    std::int64_t cost = 0;
    std::int64_t remaining = 0;
    Instant certainUntil = Instant::min();  // counted from before the store decided
    Instant retryAt{};                      // counted from after it
    Instant resetAt{};
  };
  struct Set {
    std::mutex mutex;
    std::array<Refusal, setSize> refusals;
  };

  Set& setOf(std::string_view key);

  std::atomic<Generation> generation_ = 0;
  std::vector<Set> sets_ = std::vector<Set>(setCount);
};

}  // namespace lockkeeper::detail

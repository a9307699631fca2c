#include "limit/local_limits.h"

#include <algorithm>

#include "lockkeeper/error.h"

namespace lockkeeper::detail {

namespace {
constexpr int chargedAtATime = 32;
}

void LocalLimits::take(std::span<RateCharge> charges, std::span<const RateLaw* const> laws) {
  rates_.take(charges, Instant::max());
  const bool taken = std::all_of(charges.begin(), charges.end(), [](const RateCharge& charge) {
    return charge.outcome.granted == charge.times;
  });
  if (!taken) return;
  const std::lock_guard guard(mutex_);
  for (std::size_t index = 0; index < charges.size(); ++index) {
    if (uncharged_.contains(charges[index].key)) continue;
    sweep();
    uncharged_.try_emplace(std::string(charges[index].key), Laws{*laws[index], *charges[index].law});
  }
  hasUncharged_.store(!uncharged_.empty(), std::memory_order_release);
}

void LocalLimits::charge(RateDriver& driver, std::string_view key, Instant deadline) {
  auto use = extract(key);
  if (use.empty()) return;
  try {
    charge(driver, use.key(), use.mapped(), deadline);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::storeUnavailable) putBack(std::move(use));
    throw;
  } catch (...) {
    putBack(std::move(use));
    throw;
  }
}

void LocalLimits::chargeSome(RateDriver& driver, std::span<const RateCharge> first, Instant deadline) {
  const Instant now = clock_->now();
  const Instant latest = now + (deadline - now) / 2;
  for (const RateCharge& each : first) {
    if (clock_->now() >= latest) return;
    charge(driver, each.key, deadline);
  }
  const std::unique_lock alone(charging_, std::try_to_lock);
  if (!alone) return;
  for (int count = 0; count < chargedAtATime && hasUncharged() && clock_->now() < latest; ++count) {
    std::string key;
    {
      const std::lock_guard guard(mutex_);
      if (uncharged_.empty()) return;
      key = uncharged_.begin()->first;
    }
    charge(driver, key, deadline);
  }
}

void LocalLimits::forget(std::string_view key, RateKind kind) {
  rates_.reset(key, kind, Instant::max());
  (void)extract(key);
}

std::int64_t LocalLimits::usedOf(std::string_view key, const RateLaw& law) {
  RateCharge nothing{.key = key, .law = &law, .cost = 0};
  rates_.peek({&nothing, 1}, Instant::max());
  return law.limit - nothing.outcome.remaining;
}

// Keys that are full again have nothing to be charged for: in a long outage, most are.
void LocalLimits::sweep() {
  if (uncharged_.size() < sweepAt_) return;
  std::erase_if(uncharged_, [&](const auto& use) { return usedOf(use.first, use.second.local) == 0; });
  sweepAt_ = std::max(firstSweep, 2 * uncharged_.size());
}

LocalLimits::Uncharged::node_type LocalLimits::extract(std::string_view key) {
  const std::lock_guard guard(mutex_);
  const auto found = uncharged_.find(key);
  if (found == uncharged_.end()) return {};
  auto use = uncharged_.extract(found);
  hasUncharged_.store(!uncharged_.empty(), std::memory_order_release);
  return use;
}

void LocalLimits::putBack(Uncharged::node_type use) {
  const std::lock_guard guard(mutex_);
  uncharged_.insert(std::move(use));
  hasUncharged_.store(true, std::memory_order_release);
}

// As much of it as fits: the rest would have been refused by the store. Only what was charged is used no more
// locally: each outage would start with a full burst otherwise. What others use locally meanwhile stays.
void LocalLimits::charge(RateDriver& driver, const std::string& key, const Laws& laws, Instant deadline) {
  std::int64_t charged = usedOf(key, laws.local);
  while (charged > 0) {
    RateCharge charge{
        .key = key, .law = &laws.store, .cost = charged, .longestWait = std::chrono::microseconds::max()};
    driver.take({&charge, 1}, deadline);
    if (charge.outcome.granted == 1) break;
    charged = std::min(charged - 1, charge.outcome.remaining);
  }
  if (charged > 0) rates_.refund({.key = key, .law = &laws.local, .cost = charged}, deadline);
}

}  // namespace lockkeeper::detail

#include "limit/local_limits.h"

#include <algorithm>

namespace lockkeeper::detail {

namespace {
constexpr int settledAtATime = 32;
}

void LocalLimits::take(std::span<RateCharge> charges, std::span<const RateLaw* const> laws) {
  rates_.take(charges, Instant::max());
  const bool taken = std::all_of(charges.begin(), charges.end(), [](const RateCharge& charge) {
    return charge.outcome.granted == charge.times;
  });
  if (!taken) return;
  const std::lock_guard guard(mutex_);
  for (std::size_t index = 0; index < charges.size(); ++index) {
    if (debts_.find(charges[index].key) != debts_.end() || debts_.size() >= mostDebts) continue;
    debts_.try_emplace(std::string(charges[index].key), Debt{*laws[index], *charges[index].law});
  }
  owes_.store(true, std::memory_order_release);
}

void LocalLimits::settle(RateDriver& driver, std::string_view key, Instant deadline) {
  Debts::node_type debt;
  {
    const std::lock_guard guard(mutex_);
    const auto found = debts_.find(key);
    if (found == debts_.end()) return;
    debt = debts_.extract(found);
    owes_.store(!debts_.empty(), std::memory_order_release);
  }
  try {
    pay(driver, debt.key(), debt.mapped(), deadline);
  } catch (...) {
    remember(std::move(debt));
    throw;
  }
}

void LocalLimits::settleSome(RateDriver& driver, Instant deadline) {
  const std::unique_lock alone(settling_, std::try_to_lock);
  if (!alone) return;
  for (int count = 0; count < settledAtATime && owesAnything() && clock_->now() < deadline; ++count) {
    std::string key;
    {
      const std::lock_guard guard(mutex_);
      if (debts_.empty()) return;
      key = debts_.begin()->first;
    }
    settle(driver, key, deadline);
  }
}

void LocalLimits::forget(std::string_view key, RateKind kind) {
  rates_.reset(key, kind, Instant::max());
  const std::lock_guard guard(mutex_);
  const auto found = debts_.find(key);
  if (found != debts_.end()) debts_.erase(found);
  owes_.store(!debts_.empty(), std::memory_order_release);
}

void LocalLimits::remember(Debts::node_type debt) {
  const std::lock_guard guard(mutex_);
  debts_.insert(std::move(debt));
  owes_.store(true, std::memory_order_release);
}

// As much of it as fits: the rest would have been refused by the store.
void LocalLimits::pay(RateDriver& driver, const std::string& key, const Debt& debt, Instant deadline) {
  RateCharge look{.key = key, .law = &debt.localLaw, .cost = 0};
  rates_.peek({&look, 1}, deadline);
  std::int64_t owed = debt.localLaw.limit - look.outcome.remaining;
  while (owed > 0) {
    RateCharge charge{
        .key = key, .law = &debt.law, .cost = owed, .longestWait = std::chrono::microseconds::max()};
    driver.take({&charge, 1}, deadline);
    if (charge.outcome.granted == 1) break;
    owed = std::min(owed - 1, charge.outcome.remaining);
  }
  rates_.reset(key, debt.localLaw.kind, deadline);
}

}  // namespace lockkeeper::detail

#include "limit/refusal_cache.h"

#include <algorithm>
#include <functional>

namespace lockkeeper::detail {

using std::chrono::ceil;
using std::chrono::microseconds;

bool RefusalCache::find(RateCharge& charge, Instant now) {
  Set& set = setOf(charge.key);
  const std::lock_guard guard(set.mutex);
  for (const Refusal& each : set.refusals) {
    if (each.certainUntil <= now || each.cost != charge.cost || each.key != charge.key ||
        each.law != *charge.law) {
      continue;
    }
    charge.outcome = {.remaining = each.remaining,
                      .retryAfter = ceil<microseconds>(each.retryAt - now),
                      .resetAfter = ceil<microseconds>(each.resetAt - now)};
    return true;
  }
  return false;
}

void RefusalCache::add(const RateCharge& charge, Instant sent, Instant received, Generation asked) {
  Set& set = setOf(charge.key);
  const std::lock_guard guard(set.mutex);
  if (generation() != asked) return;
  const auto same = [&](const Refusal& each) { return each.key == charge.key && each.cost == charge.cost; };
  auto place = std::find_if(set.refusals.begin(), set.refusals.end(), same);
  if (place == set.refusals.end()) {
    place =
        std::min_element(set.refusals.begin(), set.refusals.end(),
                         [](const Refusal& a, const Refusal& b) { return a.certainUntil < b.certainUntil; });
  }
  place->key.assign(charge.key);
  place->law = *charge.law;
  place->cost = charge.cost;
  place->remaining = charge.outcome.remaining;
  place->certainUntil = sent + charge.outcome.retryAfter;
  place->retryAt = received + charge.outcome.retryAfter;
  place->resetAt = received + charge.outcome.resetAfter;
}

void RefusalCache::forget(std::string_view key) {
  // First, so that no add() of an older answer comes after the sweep below.
  generation_.fetch_add(1, std::memory_order_acq_rel);
  Set& set = setOf(key);
  const std::lock_guard guard(set.mutex);
  for (Refusal& each : set.refusals) {
    if (each.key == key) each.certainUntil = Instant::min();
  }
}

RefusalCache::Set& RefusalCache::setOf(std::string_view key) {
  return sets_[std::hash<std::string_view>{}(key) % setCount];
}

}  // namespace lockkeeper::detail

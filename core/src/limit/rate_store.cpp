#include "limit/rate_store.h"

#include <algorithm>
#include <vector>

namespace lockkeeper::detail {

using std::chrono::ceil;
using std::chrono::microseconds;

namespace {
// When a call that the store has refused to answer is worth another try.
constexpr microseconds pauseAfterError = std::chrono::seconds{1};
}  // namespace

// So that the answer counts what was used. A slow store is asked first: otherwise it would have no time left
// to answer, count as down again, and find new use to be charged at the next try.
void RateStore::chargeUseBefore(std::span<const RateCharge> charges, Instant deadline) {
  if (!localLimits_.hasUncharged() || isSlow_) return;
  for (const RateCharge& each : charges) localLimits_.charge(*driver_, each.key, deadline);
}

void RateStore::chargeUseAfter(std::span<const RateCharge> charges, Instant deadline) {
  if (localLimits_.hasUncharged()) {
    const Instant started = now();
    try {
      localLimits_.chargeSome(*driver_, charges, deadline);
    } catch (const Error& error) {
      // The store has just answered. Should it be down now, the next caller will see.
      tellFailed(error, "", started);
    }
  }
  if (isSlow_ && !localLimits_.hasUncharged()) isSlow_ = false;
}

void RateStore::tellFailed(const Error& error, std::string_view key, Instant started) {
  environment_.tell({.kind = EventKind::attemptFailed,
                     .key = key,
                     .store = driver_->name(),
                     .began = started,
                     .ended = now(),
                     .error = error.code(),
                     .text = error.what()});
}

void RateStore::failed(const Error& error, std::string_view key, Instant started) {
  tellFailed(error, key, started);
  healthOf(key).failed(error, started, now(), *environment_.random);
}

void RateStore::answerOutage(std::span<RateCharge> charges, Policies policies) {
  const StoreHealth& health = healthOf(charges.front().key);
  const auto untilNextTry = health.isDown() ? ceil<microseconds>(health.nextTry() - now()) : pauseAfterError;
  bool refused = false;
  for (std::size_t index = 0; index < charges.size(); ++index) {
    RateCharge& each = charges[index];
    const RatePolicy& policy = *policies[index];
    const Outage setting = policy.options().outage;
    const bool beyondShare = setting == Outage::local && each.cost > policy.localLaw().limit;
    each.outcome = {.granted = each.times, .remaining = policy.limit()};
    if (each.cost == 0 || (setting != Outage::closed && !beyondShare)) continue;
    each.outcome = {.retryAfter = std::max(untilNextTry, microseconds{1000})};
    refused = true;
  }
  if (!refused) answerLocally(charges, policies);
}

void RateStore::answerLocally(std::span<RateCharge> charges, Policies policies) {
  std::vector<RateCharge> ours;
  std::vector<const RateLaw*> laws;
  for (std::size_t index = 0; index < charges.size(); ++index) {
    if (policies[index]->options().outage != Outage::local) continue;
    ours.push_back(charges[index]);
    ours.back().law = &policies[index]->localLaw();
    laws.push_back(&policies[index]->law());
  }
  if (ours.empty()) return;
  localLimits_.take(ours, laws);
  for (const RateCharge& own : ours) {
    for (RateCharge& each : charges) {
      if (each.key == own.key) each.outcome = own.outcome;
    }
  }
}

}  // namespace lockkeeper::detail

#include "limit/rate_engine.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <vector>

#include "base/either_stop.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/backoff.h"

namespace lockkeeper::detail {

namespace {

using std::chrono::ceil;
using std::chrono::floor;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using Failure = RateStore::Failure;

constexpr std::size_t mostTakes = 16;

RateLimiterOptions checked(RateLimiterOptions options) {
  checkNamespace(options.keyNamespace);
  checkDuration("operationTimeout", options.operationTimeout, milliseconds{1}, std::chrono::hours{1});
  if (!options.environment.clock || !options.environment.random) {
    throw std::invalid_argument("the environment of a RateLimiter needs a clock and a random");
  }
  return options;
}

std::shared_ptr<RateDriver> checked(std::shared_ptr<RateDriver> driver) {
  if (driver == nullptr) throw std::invalid_argument("a RateLimiter needs a driver");
  return driver;
}

Decision decisionOf(const RateCharge& charge, const RatePolicy& policy, const Failure& failure) {
  const RateOutcome& outcome = charge.outcome;
  Decision decision{
      .allowed = outcome.granted == charge.times,
      .remaining = outcome.remaining,
      .retryAfter = outcome.retryAfter,
      .resetAfter = outcome.resetAfter,
      .policy = policy.name(),
  };
  if (failure) {
    decision.outage = failure->code;
    decision.outageReason = failure->text;
  }
  return decision;
}

// What several limits say together.
Decision together(std::span<const RateTake> takes) {
  const auto weighsMore = [](const RateTake& left, const RateTake& right) {
    const Decision &a = left.decision, &b = right.decision;
    if (a.allowed != b.allowed) return b.allowed;
    return a.allowed ? a.remaining < b.remaining : a.retryAfter > b.retryAfter;
  };
  return std::min_element(takes.begin(), takes.end(), weighsMore)->decision;
}

/// At its end, also by an exception that leaves the outcome open: what was refused may be allowed now.
class Forgetting {
 public:
  Forgetting(RateRecords* records, std::string_view key) : records_(records), key_(key) {}
  Forgetting(const Forgetting&) = delete;
  ~Forgetting() {
    if (records_ != nullptr) records_->forgetRefusals(key_);
  }

 private:
  RateRecords* const records_;
  const std::string_view key_;
};

}  // namespace

RateEngine::RateEngine(std::shared_ptr<RateDriver> driver, RateLimiterOptions options)
    : options_(checked(std::move(options))),
      driver_(checked(std::move(driver))),
      name_(driver_->name()),
      store_(std::make_unique<RateStore>(driver_, options_.environment, options_.operationTimeout)),
      records_(driver_->isLocal() ? nullptr
                                  : std::make_unique<RateRecords>(*driver_, options_.environment.clock)) {}

RateEngine::~RateEngine() {
  if (!inherited()) return;
  // The sockets are the parent's, and its other threads may have been changing the rest: let go of all of it
  // without touching it.
  (void)records_.release();
  (void)store_.release();
  new (std::nothrow) auto(driver_);
}

bool RateEngine::inherited() const noexcept { return forkGuard_.inherited(); }

void RateEngine::check(std::string_view key, const RatePolicy& policy, std::int64_t cost) const {
  if (inherited()) {
    throw ForkedError(
        "this RateLimiter was made before fork(): make a new one, with a new driver, in the child");
  }
  checkKey(key);
  if (cost >= 0 && cost <= policy.limit()) return;
  throw std::invalid_argument("the cost " + std::to_string(cost) + " can never be allowed by the limit " +
                              quoted(policy.name()) + ": 0 to " + std::to_string(policy.limit()) +
                              " are possible");
}

RateKey RateEngine::fullKey(const RatePolicy& policy, std::string_view key) const {
  return RateKey(options_.keyNamespace, policy.name(), key);
}

Decision RateEngine::take(std::string_view key, const RatePolicy& policy, std::int64_t cost,
                          std::optional<Instant> waitsSince) {
  check(key, policy, cost);
  const RateKey full = fullKey(policy, key);
  RateCharge charge{.key = full.view(), .law = &policy.law(), .cost = cost};
  const Instant began = startOfEvent();
  const RatePolicy* const policies[] = {&policy};
  const Failure failure = decide({&charge, 1}, policies);
  Decision decision = decisionOf(charge, policy, failure);
  std::optional<std::chrono::nanoseconds> wait;
  if (waitsSince) wait = store_->now() - *waitsSince;
  report(decision, charge.key, began, wait);
  return decision;
}

Decision RateEngine::take(std::span<RateTake> takes) {
  if (takes.empty() || takes.size() > mostTakes) {
    throw std::invalid_argument(std::to_string(takes.size()) + " limits are asked together: 1 to " +
                                std::to_string(mostTakes) + " are possible");
  }
  std::vector<RateKey> keys;
  std::vector<RateCharge> charges;
  std::vector<const RatePolicy*> policies;
  keys.reserve(takes.size());
  for (const RateTake& each : takes) {
    if (each.policy == nullptr) {
      throw std::invalid_argument("the limit of the key " + quoted(each.key) +
                                  " is missing: RateTake::policy must not be null");
    }
    check(each.key, *each.policy, each.cost);
    const std::string_view full = keys.emplace_back(fullKey(*each.policy, each.key)).view();
    if (std::any_of(charges.begin(), charges.end(),
                    [&](const RateCharge& other) { return other.key == full; })) {
      throw std::invalid_argument("the key " + quoted(each.key) + " is charged twice under the limit " +
                                  quoted(each.policy->name()) + ": charge it once, with the sum");
    }
    charges.push_back({.key = full, .law = &each.policy->law(), .cost = each.cost});
    policies.push_back(each.policy);
  }
  const Instant began = startOfEvent();
  const Failure failure = decide(charges, policies);
  for (std::size_t index = 0; index < takes.size(); ++index) {
    takes[index].decision = decisionOf(charges[index], *policies[index], failure);
    report(takes[index].decision, charges[index].key, began);
  }
  return together(takes);
}

Failure RateEngine::decide(std::span<RateCharge> charges, RateStore::Policies policies) {
  const auto question = [&](Instant deadline) { driver_->take(charges, deadline); };
  if (records_ == nullptr) return store_->ask(charges, policies, question);
  const Instant started = store_->now();
  bool refused = false;
  for (RateCharge& each : charges) {
    each.outcome = {.granted = 1, .remaining = each.law->limit};  // for all that is known
    if (records_->isRefused(each, started)) refused = true;
  }
  if (refused) return {};
  if (charges.size() == 1)
    return store_->ask(charges, policies,
                       [&](Instant deadline) { records_->ask(charges.front(), deadline); });
  const auto asked = records_->generation();
  Failure failure = store_->ask(charges, policies, question);
  if (failure) return failure;
  for (const RateCharge& each : charges) {
    if (each.outcome.granted == 0) records_->remember(each, started, asked);
  }
  return failure;
}

Decision RateEngine::takeOrWait(std::string_view key, const RatePolicy& policy, const RateWait& wait,
                                std::int64_t cost) {
  checkDuration("waitFor", wait.waitFor, milliseconds{0}, std::chrono::hours{24});
  const bool queues = policy.law().kind == RateKind::leakyQueue;
  const Instant calledAt = store_->now();
  const Instant until = calledAt + wait.waitFor;
  for (;;) {
    Decision decision;
    if (queues) {
      const auto left = std::max(until - store_->now(), Instant::duration::zero());
      RateSlot slot = reserve(key, policy, cost, floor<microseconds>(left), calledAt, &wait.stop);
      decision = slot.decision();
      if (!slot) {
        try {
          slot.giveBack();  // if it was there, and waiting for it was stopped
        } catch (const Error&) {
          // Then it stays empty.
        }
      }
    } else {
      decision = take(key, policy, cost, calledAt);
    }
    // A slot that is too far now does not come nearer than the end of the wait, which nears as well.
    if (decision.allowed || (queues && !decision.outage)) return decision;
    const Instant again = saturatingAdd(store_->now(), decision.retryAfter);
    if (again > until || !pauseUntil(again, wait.stop)) return decision;
  }
}

RateSlot RateEngine::reserve(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  return reserve(key, policy, cost, microseconds::max(), store_->now(), nullptr);
}

RateSlot RateEngine::reserve(std::string_view key, const RatePolicy& policy, std::int64_t cost,
                             microseconds longestWait, Instant calledAt, const std::stop_token* stop) {
  check(key, policy, cost);
  if (policy.law().kind != RateKind::leakyQueue) {
    throw std::invalid_argument("the limit " + quoted(policy.name()) + " is a " +
                                toString(policy.law().kind) + ": only a leaky-queue has slots");
  }
  const RateKey full = fullKey(policy, key);
  const RatePolicy* const policies[] = {&policy};
  RateCharge charge{.key = full.view(), .law = &policy.law(), .cost = cost, .longestWait = longestWait};
  const Instant began = startOfEvent();
  const Failure failure = store_->ask({&charge, 1}, policies, [&](Instant deadline) {
    driver_->take({&charge, 1}, deadline);
  });
  RateSlot::State slot{.engine = shared_from_this(), .decision = decisionOf(charge, policy, failure)};
  if (!slot.decision.allowed) {
    report(slot.decision, charge.key, began);
    return RateSlot(std::move(slot));
  }
  // The answer came after the store has decided: counted from now, the slot cannot come too early.
  slot.at =
      saturatingAdd(store_->now(), roundedUp(charge.outcome.slot) - microseconds{charge.outcome.storeTime});
  if (!failure) {  // otherwise, there is nothing in the store to give back
    slot.key = charge.key;
    slot.law = *charge.law;
    slot.cost = cost;
    slot.slot = charge.outcome.slot;
  }
  if (stop != nullptr && !pauseUntil(slot.at, *stop)) {
    slot.decision.allowed = false;
    slot.decision.retryAfter = std::max(ceil<microseconds>(slot.at - store_->now()), microseconds{1});
  }
  report(slot.decision, charge.key, began, std::max(slot.at, calledAt) - calledAt);
  return RateSlot(std::move(slot));
}

Decision RateEngine::peek(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  check(key, policy, cost);
  const RateKey full = fullKey(policy, key);
  RateCharge charge{.key = full.view(), .law = &policy.law(), .cost = cost};
  store_->send(charge.key, [&](Instant deadline) { driver_->peek({&charge, 1}, deadline); });
  return decisionOf(charge, policy, {});
}

bool RateEngine::refund(std::string_view key, const RatePolicy& policy, std::int64_t cost) {
  check(key, policy, cost);
  if (policy.law().kind == RateKind::leakyQueue) {
    throw std::invalid_argument("the limit " + quoted(policy.name()) +
                                " is a leaky-queue: give back the slot that was reserved");
  }
  const RateKey full = fullKey(policy, key);
  return refund(RateRefund{.key = full.view(), .law = &policy.law(), .cost = cost});
}

bool RateEngine::refund(const RateRefund& refund) {
  if (inherited() || refund.cost == 0) return false;
  bool given = false;
  const Forgetting after(records_.get(), refund.key);
  store_->send(refund.key, [&](Instant deadline) { given = driver_->refund(refund, deadline); });
  return given;
}

void RateEngine::reset(std::string_view key, const RatePolicy& policy) {
  check(key, policy, 0);
  const RateKey full = fullKey(policy, key);
  const RateKind kind = policy.law().kind;
  const Forgetting after(records_.get(), full.view());
  store_->send(full.view(), [&](Instant deadline) { driver_->reset(full.view(), kind, deadline); });
  store_->forget(full.view(), kind);
}

// Not read where nobody hears of it: it would be most of what a refusal from the cache costs.
Instant RateEngine::startOfEvent() const { return options_.environment.listener ? store_->now() : Instant{}; }

void RateEngine::report(const Decision& decision, std::string_view key, Instant began,
                        std::optional<std::chrono::nanoseconds> wait) const {
  if (!options_.environment.listener) return;
  options_.environment.tell({.kind = EventKind::decided,
                             .key = key,
                             .store = name_,
                             .began = began,
                             .ended = store_->now(),
                             .error = decision.outage,
                             .text = decision.outageReason,
                             .decision = &decision,
                             .wait = decision.allowed ? wait : std::nullopt});
}

bool RateEngine::pauseUntil(Instant until, const std::stop_token& stop) const {
  const EitherStop either(stop, stop_.get_token());
  return lockkeeper::pauseUntil(*options_.environment.clock, until, either.token());
}

void RateEngine::stop() noexcept {
  // In a forked child, those who wait are not here, and what would wake them is the parent's.
  if (!inherited()) stop_.request_stop();
}

}  // namespace lockkeeper::detail

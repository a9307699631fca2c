#include "lockkeeper/owner/owner_token.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "lockkeeper/base/loss_listeners.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/holders.h"

namespace lockkeeper {
namespace {

/// Who has all of a key has every share of it.
bool covers(const std::optional<Share>& held, const std::optional<Share>& asked) {
  return !held || held == asked;
}

class DriverWithOwner final : public LockDriver, public LossReporting, public Waitable {
 public:
  DriverWithOwner(std::shared_ptr<LockDriver> driver, std::vector<OwnerToken> tokens,
                  std::shared_ptr<Clock> clock)
      : driver_(std::move(driver)),
        clock_(std::move(clock)),
        permits_(capability<Permits>(*driver_)),
        waitable_(capability<Waitable>(*driver_)) {
    for (OwnerToken& each : tokens) owned_.emplace_back(*this, std::move(each));
  }

  AcquireResult acquire(const AcquireRequest& request) override {
    if (const auto granted = grantOwned(request)) return *granted;
    return driver_->acquire(request);
  }

  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop) override {
    if (const auto granted = grantOwned(request)) return *granted;
    return waitable_->acquireWaiting(request, waitFor, std::move(stop));
  }
  bool waitersReportedSince(Instant since) noexcept override {
    return waitable_->waitersReportedSince(since);
  }

  void renew(std::span<Renewal> renewals, Instant deadline) override {
    const auto isOurs = [this](const Renewal& each) { return owned(each.claim) != nullptr; };
    for (auto first = renewals.begin(); first != renewals.end();) {
      if (const Owned* const by = owned(first->claim)) {
        renewOwned(*first++, by->token, deadline);
      } else {
        const auto last = std::find_if(first, renewals.end(), isOurs);
        driver_->renew({first, last}, deadline);
        first = last;
      }
    }
  }

  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    {
      const std::lock_guard guard(mutex_);
      if (const auto found = claims_.extract(claim.token)) {
        const bool ended = found.mapped()->token.ended.stop_requested();
        return ended ? ReleaseOutcome::notOwner : ReleaseOutcome::released;
      }
    }
    return driver_->release(claim, deadline);
  }

  std::optional<Holder> holder(std::string_view key, Instant deadline) override {
    return driver_->holder(key, deadline);
  }
  Promises promises() const override { return driver_->promises(); }
  std::string name() const override { return driver_->name(); }

  void* findCapability(const std::type_info& type) noexcept override {
    // These take or end claims, which may be the owner's: core does without them.
    if (type == typeid(Batchable) || type == typeid(BatchReleasing) || type == typeid(Postable))
      return nullptr;
    if (type == typeid(Waitable) && waitable_ == nullptr) return nullptr;
    if (auto* const own = capabilityOf<LossReporting, Waitable>(*this, type)) return own;
    return driver_->findCapability(type);
  }
  std::string_view whyNot(const std::type_info& type) const noexcept override {
    return driver_->whyNot(type);
  }

  void addLossListener(std::weak_ptr<LossListener> listener) override {
    if (auto* const reporting = capability<LossReporting>(*driver_)) reporting->addLossListener(listener);
    listeners_.add(std::move(listener));
  }

 private:
  struct Owned {
    const OwnerToken token;
    const std::stop_callback<std::function<void()>> onEnd;

    Owned(DriverWithOwner& driver, OwnerToken named)
        : token(std::move(named)), onEnd(token.ended, [this, &driver] { driver.tellEnd(*this); }) {}
  };

  /// The grant of a key that the owner has; empty for any other key.
  std::optional<Granted> grantOwned(const AcquireRequest& request) {
    const Claim& claim = request.claim;
    for (const Owned& each : owned_) {
      if (each.token.key != claim.key || !covers(each.token.grant.share, claim.share)) continue;
      const auto granted = leaseOf(each.token, request.deadline);
      if (!granted) continue;
      const std::lock_guard guard(mutex_);
      // Asked under the mutex: either the end finds the claim, or this finds the end.
      if (each.token.ended.stop_requested()) continue;
      claims_.insert_or_assign(claim.token, &each);
      return granted;
    }
    return std::nullopt;
  }

  /// What the store says is left of the owner's lease; empty if the owner does not have the key any more.
  std::optional<Granted> leaseOf(const OwnerToken& token, Instant deadline) {
    const Instant asked = clock_->now();
    std::vector<Holder> holders;
    if (token.grant.share && permits_ != nullptr) {
      holders = permits_->shareHolders(token.key, deadline);
    } else if (auto holder = driver_->holder(token.key, deadline)) {
      holders.push_back(std::move(*holder));
    }
    // By its owner alone, a grant is not told from another one.
    const bool told = token.grant.fence || !token.grant.grantId.empty();
    const auto shown = std::ranges::find_if(
        holders, [&](const Holder& each) { return told && sameGrant(each, token.grant); });
    if (shown == holders.end() || !shown->remaining) return std::nullopt;
    return Granted{.leasedFrom = asked, .leasedFor = *shown->remaining, .fence = token.fence};
  }

  void renewOwned(Renewal& renewal, const OwnerToken& token, Instant deadline) {
    try {
      const auto granted = token.ended.stop_requested() ? std::nullopt : leaseOf(token, deadline);
      renewal.outcome = granted ? RenewOutcome::renewed : RenewOutcome::notOwner;
      if (!granted) return;
      renewal.leasedFrom = granted->leasedFrom;
      renewal.leasedFor = granted->leasedFor;
    } catch (const Error& error) {
      renewal.outcome = RenewOutcome::unavailable;  // nothing was changed
      renewal.cause = error.what();
    }
  }

  const Owned* owned(const Claim& claim) {
    const std::lock_guard guard(mutex_);
    const auto found = claims_.find(claim.token);
    return found == claims_.end() ? nullptr : found->second;
  }

  void tellEnd(const Owned& ended) {
    const std::lock_guard guard(mutex_);
    for (const auto& [token, owned] : claims_) {
      if (owned == &ended) listeners_.claimsLost({&token, 1});
    }
  }

  const std::shared_ptr<LockDriver> driver_;
  const std::shared_ptr<Clock> clock_;
  Permits* const permits_;    // null when the driver has none
  Waitable* const waitable_;  // null when the driver cannot
  LossListeners listeners_;
  std::mutex mutex_;                        // of the next one
  std::map<Token, const Owned*> claims_{};  // those that the owner's lock was granted to
  std::deque<Owned> owned_{};               // the last member: its callbacks use the others
};

}  // namespace

std::shared_ptr<LockDriver> withOwner(std::shared_ptr<LockDriver> driver, std::vector<OwnerToken> tokens,
                                      std::shared_ptr<Clock> clock) {
  if (tokens.empty()) return driver;
  return std::make_shared<DriverWithOwner>(std::move(driver), std::move(tokens), std::move(clock));
}

}  // namespace lockkeeper

#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <type_traits>
#include <vector>

#include "decorators.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"

namespace lockkeeper::test {

/// Gives back the first claim itself, which comes to the store only after the next grant.
class LateWithdrawal final : public Decorator, public Batchable, public Waitable {
 public:
  using Decorator::Decorator;

  AcquireResult acquire(const AcquireRequest& request) override {
    return passed(request.claim, [&] { return inner_->acquire(request); });
  }
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds /*waitFor*/,
                               std::stop_token /*stop*/) override {
    return passed(request.claim, [&] { return inner_->acquire(request); });
  }
  std::vector<AcquireResult> acquireInOrder(std::span<const AcquireRequest> requests) override {
    return passed(requests.front().claim,
                  [&] { return capability<Batchable>(*inner_)->acquireInOrder(requests); });
  }
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Batchable, Waitable>(*this, type);
  }

 private:
  template <class Ask>
  std::invoke_result_t<Ask> passed(const Claim& claim, Ask ask) {
    const std::lock_guard held(mutex_);
    if (!withdrawn_) {
      key_ = claim.key;
      withdrawn_ = {.key = key_, .token = claim.token, .owner = {}};
      throw WithdrawalUnknown("given back, perhaps, says the test");
    }
    auto result = ask();
    inner_->release(*withdrawn_, Instant::max());
    return result;
  }

  std::mutex mutex_;
  std::string key_;
  std::optional<Claim> withdrawn_;
};

/// A store that leases for as long as it likes.
class OtherLength final : public PlainDecorator {
 public:
  using Length = std::function<std::chrono::milliseconds(std::chrono::milliseconds asked)>;

  OtherLength(std::shared_ptr<LockDriver> inner, Length length)
      : PlainDecorator(std::move(inner)), length_(std::move(length)) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireRequest given = request;
    given.ttl = length_(request.ttl);
    return inner_->acquire(given);
  }
  void renew(std::span<Renewal> renewals, Instant deadline) override {
    for (Renewal& each : renewals) each.ttl = length_(each.ttl);
    inner_->renew(renewals, deadline);
  }

 private:
  const Length length_;
};

}  // namespace lockkeeper::test

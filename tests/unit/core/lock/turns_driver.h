#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>

#include "decorators.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/queue.h"

namespace lockkeeper::test {

/// A store that grants as many turns as are asked for, each with a fence, and tells of waiters. It can report
/// losses: of the store behind the driver that it decorates.
class TurnsDriver final : public PlainDecorator, public Waitable, public LossReporting {
 public:
  TurnsDriver(std::shared_ptr<LockDriver> inner, std::shared_ptr<LockDriver> store)
      : PlainDecorator(std::move(inner)), store_(std::move(store)) {}

  /// How long a grant may be handed on.
  std::atomic<std::chrono::nanoseconds> stay{std::chrono::hours{1}};
  std::atomic<std::uint32_t> mostTurns = 1000;
  std::atomic<std::uint32_t> askedTurns = 0;
  /// Somebody has begun to wait just then.
  std::atomic<Instant> reportedAt = Instant::min();

  AcquireResult acquire(const AcquireRequest& request) override {
    askedTurns = request.localHolders;
    AcquireResult result = inner_->acquire(request);
    if (auto* granted = std::get_if<Granted>(&result)) {
      granted->fence = *granted->fence * 1000;
      granted->localHolders = std::min(request.localHolders, mostTurns.load());
      granted->handOverFor = stay;
    }
    return result;
  }
  /// Has no queue: callers poll.
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds /*waitFor*/,
                               std::stop_token /*stop*/) override {
    return acquire(request);
  }
  bool waitersReportedSince(Instant since) noexcept override { return reportedAt.load() >= since; }
  void addLossListener(std::weak_ptr<LossListener> listener) override {
    capability<LossReporting>(*store_)->addLossListener(std::move(listener));
  }
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Waitable, LossReporting>(*this, type);
  }

 private:
  const std::shared_ptr<LockDriver> store_;
};

}  // namespace lockkeeper::test

#include "lockkeeper/mysql/getlock_driver.h"

#include <utility>

#include "getlock/getlock_impl.h"

namespace lockkeeper::mysql {

GetLockDriver::GetLockDriver(const StoreUri& uri, const Environment& environment)
    : impl_(std::make_unique<Impl>(uri, environment)) {}

GetLockDriver::~GetLockDriver() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult GetLockDriver::acquire(const AcquireRequest& request) {
  impl_->forkGuard.check();
  return impl_->acquire(request);
}

AcquireResult GetLockDriver::acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                                            std::stop_token stop) {
  impl_->forkGuard.check();
  return impl_->acquireWaiting(request, waitFor, std::move(stop));
}

void GetLockDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  impl_->renew(renewals, deadline);
}

ReleaseOutcome GetLockDriver::release(const Claim& claim, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->release(claim, deadline);
}

std::optional<Holder> GetLockDriver::holder(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->holder(key, deadline);
}

void* GetLockDriver::findCapability(const std::type_info& type) noexcept {
  if (type == typeid(RateDriver)) return static_cast<RateDriver*>(&impl_->rates);
  return capabilityOf<Waitable, LossReporting>(*this, type);
}

std::string GetLockDriver::name() const { return impl_->display(); }

void GetLockDriver::addLossListener(std::weak_ptr<LossListener> listener) {
  impl_->forkGuard.check();
  impl_->addLossListener(std::move(listener));
}

Promises GetLockDriver::promises() const {
  impl_->forkGuard.check();
  return impl_->promises();
}

}  // namespace lockkeeper::mysql

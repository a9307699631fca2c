#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::testing {

/// Passes everything on, and knows of no capability: as a tracing or retrying decorator would.
class Decorator : public LockDriver {
 public:
  explicit Decorator(std::shared_ptr<LockDriver> inner) : inner_(std::move(inner)) {}

  AcquireResult acquire(const AcquireRequest& request) override { return inner_->acquire(request); }
  void renew(std::span<Renewal> renewals, Instant deadline) override { inner_->renew(renewals, deadline); }
  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    return inner_->release(claim, deadline);
  }
  std::optional<Holder> holder(std::string_view key, Instant deadline) override {
    return inner_->holder(key, deadline);
  }
  Promises promises() const override { return inner_->promises(); }
  void* findCapability(const std::type_info& type) noexcept override { return inner_->findCapability(type); }

 protected:
  const std::shared_ptr<LockDriver> inner_;
};

/// A store that leases for as long as it likes.
class OtherLength final : public Decorator {
 public:
  using Length = std::function<std::chrono::milliseconds(std::chrono::milliseconds asked)>;

  OtherLength(std::shared_ptr<LockDriver> inner, Length length)
      : Decorator(std::move(inner)), length_(std::move(length)) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireRequest given = request;
    given.ttl = length_(request.ttl);
    return inner_->acquire(given);
  }
  void renew(std::span<Renewal> renewals, Instant deadline) override {
    for (Renewal& each : renewals) each.ttl = length_(each.ttl);
    inner_->renew(renewals, deadline);
  }
  void* findCapability(const std::type_info& /*type*/) noexcept override { return nullptr; }

 private:
  const Length length_;
};

}  // namespace lockkeeper::testing

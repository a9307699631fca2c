#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::test {

/// Passes each call on to another driver, of whose capabilities it has none. For stores of a test's own.
class PlainDecorator : public LockDriver {
 public:
  explicit PlainDecorator(std::shared_ptr<LockDriver> inner) : inner_(std::move(inner)) {}

  AcquireResult acquire(const AcquireRequest& request) override { return inner_->acquire(request); }
  void renew(std::span<Renewal> renewals, Instant deadline) override { inner_->renew(renewals, deadline); }
  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    return inner_->release(claim, deadline);
  }
  std::optional<Holder> holder(std::string_view key, Instant deadline) override {
    return inner_->holder(key, deadline);
  }
  Promises promises() const override { return inner_->promises(); }

 protected:
  const std::shared_ptr<LockDriver> inner_;
};

/// Passes everything on, and knows of no capability: as a tracing or retrying decorator would.
class Decorator : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;

  void* findCapability(const std::type_info& type) noexcept override { return inner_->findCapability(type); }
};

}  // namespace lockkeeper::test

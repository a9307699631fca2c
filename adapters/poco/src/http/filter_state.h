#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "http/route/route_table.h"
#include "lockkeeper/poco/filter_hooks.h"
#include "lockkeeper/rate_limiter.h"

namespace lockkeeper::poco::detail {

/// What a filter shares with the handlers that it has made. Thread-safe.
class FilterState {
 public:
  FilterState(std::shared_ptr<RateLimiter> limiter, FilterHooks hooks,
              const Poco::Util::AbstractConfiguration& configuration)
      : limiter_(std::move(limiter)), hooks_(std::move(hooks)) {
    load(configuration);
  }

  /// Throws ConfigError, and then the present table stays.
  void load(const Poco::Util::AbstractConfiguration& configuration) {
    auto fresh = std::make_shared<const RouteTable>(configuration, hooks_.user);
    const std::lock_guard guard(mutex_);
    table_.swap(fresh);  // the old one ends with its last request
  }

  std::shared_ptr<const RouteTable> table() const {
    const std::lock_guard guard(mutex_);
    return table_;
  }

  RateLimiter& limiter() const { return *limiter_; }
  const FilterHooks& hooks() const { return hooks_; }

 private:
  const std::shared_ptr<RateLimiter> limiter_;
  const FilterHooks hooks_;
  mutable std::mutex mutex_;
  std::shared_ptr<const RouteTable> table_;
};

}  // namespace lockkeeper::poco::detail

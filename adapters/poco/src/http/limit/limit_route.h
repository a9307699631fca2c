#pragma once

#include <string>
#include <vector>

#include "http/filter_rules.h"
#include "lockkeeper/poco/rate_limit_filter.h"

namespace lockkeeper::poco {

/// One limit that the requests of a route must keep.
struct RouteLimit {
  const RatePolicy* policy;  ///< In the options.
  KeySource source;
};

/// A route of RateLimitFilter, checked.
struct LimitRoute {
  std::string name;
  RoutePattern pattern;
  bool dryRun = false;
  std::vector<RouteLimit> limits{};
  bool needsBody = false;
  std::string policyField{};  ///< RateLimit-Policy of its answers.

  /// Throws std::invalid_argument that names the setting.
  static LimitRoute of(const LimitedRoute& given, const RateLimitOptions& options);
};

/// Throws std::invalid_argument for what is not allowed, whatever the routes.
void checkFilter(const RateLimitOptions& options);

using LimitRules = FilterRules<RateLimitOptions, LimitRoute>;

}  // namespace lockkeeper::poco

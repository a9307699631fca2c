#pragma once

#include <chrono>
#include <string>

#include "http/filter_rules.h"
#include "lockkeeper/poco/idempotency.h"

namespace lockkeeper::poco {

/// A route of Idempotency, checked.
struct IdempotencyRoute {
  std::string name;
  RoutePattern pattern;
  KeySource client;
  bool required;
  std::chrono::milliseconds keepFor;
  LockOptions lock;

  /// Throws std::invalid_argument that names the setting.
  static IdempotencyRoute of(const IdempotentRoute& given, const IdempotencyOptions& options);
};

/// Throws std::invalid_argument for what is not allowed, whatever the routes.
void checkFilter(const IdempotencyOptions& options);

using IdempotencyRules = FilterRules<IdempotencyOptions, IdempotencyRoute>;

/// Whether requests by this method are kept: those that may change something and may have a body.
bool isKeptMethod(std::string_view method);

}  // namespace lockkeeper::poco
